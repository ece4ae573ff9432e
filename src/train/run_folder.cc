#include "train/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>
#include <vector>

#include "base/error.h"
#include "train/checkpoint/folder_name.h"

namespace assay::train {
namespace {

namespace fs = std::filesystem;

constexpr auto kMostWait = std::chrono::seconds(3);
constexpr auto kBetween = std::chrono::milliseconds(20);

base::Result<bool> has_checkpoints(const fs::path& folder) {
  const fs::path root = folder / "checkpoints";
  std::error_code error;
  if (!fs::exists(root, error)) return false;
  ASSAY_TRY(const std::vector<std::int64_t> steps, checkpoint::steps_in(root));
  return !steps.empty();
}

base::Result<void> check_start(const fs::path& folder, StartFrom from) {
  if (from == StartFrom::kEither) return {};
  ASSAY_TRY(const bool any, has_checkpoints(folder));
  if (any && from == StartFrom::kStepOne) {
    return base::fail(already_has_checkpoints(folder));
  }
  if (!any && from == StartFrom::kCheckpoint) {
    return base::fail(
        base::usage_error(folder.string(), "has no checkpoint to resume",
                          "name the run's folder with --out, or start it with --resume-or-start"));
  }
  return {};
}

// Whether no step has left anything in it.
bool is_untrained(const fs::path& folder) {
  std::error_code error;
  const auto any = has_checkpoints(folder);
  if (!any || *any) return false;
  const auto metrics = fs::file_size(folder / "metrics.jsonl", error);
  return error || metrics == 0;
}

// Whether the open folder still has this name: another trainer may have removed it meanwhile.
bool is_at(int descriptor, const fs::path& folder) {
  struct stat opened {};
  struct stat named {};
  return ::fstat(descriptor, &opened) == 0 && ::stat(folder.c_str(), &named) == 0 &&
         opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

}  // namespace

base::Error already_has_checkpoints(const fs::path& folder) {
  return base::usage_error((folder / "checkpoints").string(),
                           "already has checkpoints of another run",
                           "continue it with --resume, or name another folder with --out");
}

base::Result<RunFolder> RunFolder::make(const fs::path& folder) {
  // Without a trailing slash, with which the parent would be the folder itself.
  RunFolder made(folder.has_filename() ? folder : folder.parent_path());
  ASSAY_TRY_VOID(made.create());
  return made;
}

base::Result<void> RunFolder::take(StartFrom from, bool lock) {
  if (lock) ASSAY_TRY_VOID(take_lock());
  return check_start(folder_, from);
}

base::Result<void> RunFolder::create() {
  std::error_code error;
  fs::path missing;
  for (fs::path path = fs::absolute(folder_, error).lexically_normal();
       !error && !path.empty() && !fs::exists(path, error); path = path.parent_path()) {
    missing = path;
  }
  fs::create_directories(folder_, error);
  if (error) return base::fail(base::unfit_error(folder_, "cannot be created: " + error.message()));
  if (made_from_.empty()) made_from_ = std::move(missing);
  if (::access(folder_.c_str(), W_OK) != 0) {
    return base::fail(
        base::unfit_error(folder_, "is not writable", "choose another folder with --out"));
  }
  return {};
}

// Locks the folder itself, so that no lock file is left.
base::Result<void> RunFolder::take_lock() {
  const auto limit = std::chrono::steady_clock::now() + kMostWait;
  while (true) {
    lock_.reset(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!lock_.valid() && errno != ENOENT) {
      return base::fail(base::system_error(folder_, "cannot be opened", errno));
    }
    const bool busy =
        lock_.valid() && ::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (lock_.valid() && !busy && is_at(lock_.get(), folder_)) return {};
    lock_.reset();
    if (std::chrono::steady_clock::now() > limit) {
      return base::fail(base::unfit_error(folder_, "another trainer is running in this folder",
                                          "wait for it, or name another folder with --out"));
    }
    if (!busy) ASSAY_TRY_VOID(create());  // the previous trainer has removed it
    std::this_thread::sleep_for(kBetween);
  }
}

bool RunFolder::is_ours_to_remove() {
  if (lock_.valid()) return true;
  lock_.reset(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return lock_.valid() && (::flock(lock_.get(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK);
}

RunFolder::~RunFolder() {
  if (made_from_.empty() || !is_ours_to_remove() || !is_untrained(folder_)) return;
  std::error_code ignored;
  const fs::path folder = fs::absolute(folder_, ignored).lexically_normal();
  fs::remove_all(folder, ignored);
  // Also removes parent folders that were created, if they are empty.
  for (fs::path path = folder; path != made_from_ && path.has_relative_path();) {
    path = path.parent_path();
    if (!fs::remove(path, ignored) || ignored) return;
  }
}

}  // namespace assay::train
