#include "train/checkpoint/staging.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "train/checkpoint/folder.h"
#include "train/checkpoint/output_file.h"

namespace assay::checkpoint {
namespace {

namespace fs = std::filesystem;

bool rename_to(const fs::path& from, const fs::path& to) {
  return ::rename(from.c_str(), to.c_str()) == 0;
}

// Not every file system can exchange two names.
bool exchange(const fs::path& a, const fs::path& b) {
  return ::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) == 0;
}

}  // namespace

base::Result<StagingFolder> StagingFolder::create(const fs::path& root, std::int64_t step) {
  std::string name = hidden_name(step, HiddenKind::kTmp);
  if (::mkdir((root / name).c_str(), 0777) != 0) {
    return base::fail(file_error(root.string(), "cannot create a folder there", errno));
  }
  return StagingFolder(root, std::move(name), step);
}

StagingFolder::StagingFolder(StagingFolder&& other) noexcept
    : root_(std::move(other.root_)), name_(std::exchange(other.name_, {})), step_(other.step_) {}

StagingFolder::~StagingFolder() {
  discard();
}

void StagingFolder::discard() {
  if (name_.empty()) return;
  static_cast<void>(discard_folder(root_, name_, step_));
  name_.clear();
}

base::Result<fs::path> StagingFolder::commit() {
  ASSAY_TRY_VOID(sync_folder(path()));
  const fs::path target = root_ / step_name(step_);
  if (!rename_to(path(), target)) {
    if (errno != ENOTEMPTY && errno != EEXIST) {
      return base::fail(file_error(target.string(), "cannot rename the checkpoint", errno));
    }
    ASSAY_TRY_VOID(replace(target));
  }
  name_.clear();
  ASSAY_TRY_VOID(sync_folder(root_));
  return target;
}

base::Result<void> StagingFolder::replace(const fs::path& target) {
  const std::string gone = hidden_name(step_, HiddenKind::kGone);
  const std::string was = hidden_name(step_, HiddenKind::kWas);
  if (exchange(path(), target)) {
    rename_to(path(), root_ / gone);
  } else {
    // A process killed between these two leaves no step-N; sweep() restores the old one.
    if (!rename_to(target, root_ / was) || !rename_to(path(), target)) {
      const int error = errno;
      rename_to(root_ / was, target);
      return base::fail(file_error(target.string(), "cannot replace the checkpoint", error));
    }
    rename_to(root_ / was, root_ / gone);
  }
  // The new one is committed. If the old one cannot be removed now, sweep() does it later.
  static_cast<void>(sync_folder(root_));
  static_cast<void>(remove_folder(root_, gone, step_));
  return {};
}

}  // namespace assay::checkpoint
