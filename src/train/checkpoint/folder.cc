#include "train/checkpoint/folder.h"

#include <cerrno>
#include <cstdio>

#include "train/checkpoint/folder_lock.h"
#include "train/checkpoint/output_file.h"

namespace assay::checkpoint {
namespace {

namespace fs = std::filesystem;

// Another process may be removing it too, so ENOENT is not an error. A file that was being added
// when the folder got its hidden name takes a second try.
base::Result<void> remove_tree(const fs::path& folder) {
  constexpr int kTries = 3;
  std::error_code error;
  for (int i = 0; i < kTries; ++i) {
    fs::remove_all(folder, error);
    if (error.value() != ENOTEMPTY && error.value() != EEXIST) break;
  }
  if (!error || error.value() == ENOENT) return {};
  return base::fail(file_error(folder.string(), "cannot remove", error.value()));
}

base::Result<void> sweep_one(const fs::path& root, const std::string& name,
                             const HiddenName& hidden) {
  const fs::path folder = root / name;
  if (hidden.kind == HiddenKind::kGone) {
    ASSAY_TRY_VOID(remove_folder(root, name, hidden.step));
    return {};
  }
  if (!owner_has_exited(hidden, folder)) return {};
  if (hidden.kind == HiddenKind::kTmp) return discard_folder(root, name, hidden.step);
  const fs::path visible = root / step_name(hidden.step);
  std::error_code ignored;
  if (!fs::exists(visible, ignored)) {
    if (::rename(folder.c_str(), visible.c_str()) == 0) return sync_folder(root);
    return base::fail(file_error(folder.string(), "cannot restore", errno));
  }
  ASSAY_TRY_VOID(remove_folder(root, name, hidden.step));
  return {};
}

}  // namespace

base::Result<void> discard_folder(const fs::path& root, const std::string& name,
                                  std::int64_t step) {
  const fs::path gone = root / hidden_name(step, HiddenKind::kGone);
  if (::rename((root / name).c_str(), gone.c_str()) == 0) return remove_tree(gone);
  if (errno == ENOENT) return {};
  return base::fail(file_error((root / name).string(), "cannot remove", errno));
}

base::Result<bool> remove_folder(const fs::path& root, const std::string& name, std::int64_t step) {
  ASSAY_TRY(const RemovalLock lock, RemovalLock::take(root / name));
  if (lock.in_use()) return false;
  fs::path folder = root / name;
  if (!name.starts_with('.')) {
    // Hidden first: removing takes time, and a partial checkpoint must not be visible.
    const fs::path gone = root / hidden_name(step, HiddenKind::kGone);
    if (::rename(folder.c_str(), gone.c_str()) != 0) {
      return base::fail(file_error(folder.string(), "cannot remove", errno));
    }
    ASSAY_TRY_VOID(sync_folder(root));
    folder = gone;
  }
  ASSAY_TRY_VOID(remove_tree(folder));
  return true;
}

base::Result<void> sweep(const fs::path& root) {
  std::vector<std::pair<std::string, HiddenName>> found;
  std::error_code error;
  for (fs::directory_iterator at(root, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (const auto hidden = parse_hidden(name)) found.emplace_back(name, *hidden);
  }
  if (error) return base::fail(file_error(root.string(), "cannot list", error.value()));
  for (const auto& [name, hidden] : found) ASSAY_TRY_VOID(sweep_one(root, name, hidden));
  return {};
}

}  // namespace assay::checkpoint
