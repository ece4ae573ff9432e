#include "lineage/track/hash_task.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "lineage/track/stamp.h"

namespace assay::lineage {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
// Two ticks of the slowest clock that Linux is built with (100 per second).
constexpr std::int64_t kTicks = 20'000'000;

HashResult unreadable(HashResult result, std::string text) {
  result.state = HashResult::State::kUnreadable;
  result.error = std::make_unique<std::string>(std::move(text));
  return result;
}

HashResult with(HashResult result, HashResult::State state) {
  result.state = state;
  return result;
}

}  // namespace

HashResult hash_task(const HashTask& task, const hash::HashOptions& options) {
  TaskBatch batch;
  batch.add(task, options);
  return std::move(batch.take().front());
}

const HashResult& TaskBatch::add(const HashTask& task, const hash::HashOptions& options) {
  HashResult result;
  result.id = task.id;
  const std::string path = *task.folder + "/" + task.name;
  if (task.fd.valid()) {
    result = hash_open(task.fd.get(), path, std::move(result), task.expected, options);
    return results_.emplace_back(std::move(result));
  }
  const FolderHandle::At at = folder_.at(*task.folder, task.name);
  const base::UniqueFd fd(
      ::openat(at.directory, at.path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC));
  if (fd.valid()) {
    result = hash_open(fd.get(), path, std::move(result), task.expected, options);
  } else if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP) {
    result.state = HashResult::State::kGone;
  } else {
    result = unreadable(std::move(result), base::system_error(path, "cannot open", errno).what);
  }
  return results_.emplace_back(std::move(result));
}

HashResult TaskBatch::hash_open(int fd, const std::string& where, HashResult result,
                                const hash::FileStamp& expected, const hash::HashOptions& options) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) {
    return unreadable(std::move(result), base::system_error(where, "cannot read", errno).what);
  }
  const auto before = stamp_of(status);
  if (!S_ISREG(status.st_mode) || !same_file(to_wire(before), to_wire(expected))) {
    return with(std::move(result), HashResult::State::kGone);
  }
  if (!same_content(to_wire(before), to_wire(expected))) {
    return with(std::move(result), HashResult::State::kChanged);
  }
  const std::int64_t now_ns = file_clock_ns();
  const bool small = small_.takes(before.size);
  const auto hashed =
      small ? small_.add(fd, where, before) : hash::hash_file(fd, where, before, options);
  if (!hashed) return unreadable(std::move(result), hashed.error().what);
  if (small) small_results_.push_back(results_.size());
  if (hashed->changed) {
    // A new name or new bytes? Only size and mtime tell, so the digest is not cacheable.
    const bool same = ::fstat(fd, &status) == 0 &&
                      same_content(to_wire(stamp_of(status)), to_wire(expected)) &&
                      hashed->size.count() == expected.size;
    if (!same) return with(std::move(result), HashResult::State::kChanged);
  }
  result.state = HashResult::State::kDone;
  result.digest = hashed->digest;
  result.stamp = hashed->stamp;
  result.cacheable = !hashed->changed && !racily_new(hashed->stamp, now_ns);
  return result;
}

void TaskBatch::drop_last() {
  results_.pop_back();
  if (!small_results_.empty() && small_results_.back() == results_.size()) {
    small_results_.back() = kDropped;
  }
}

void TaskBatch::hash_small() {
  const std::vector<hash::Digest> digests = small_.digests();
  for (std::size_t i = 0; i < digests.size(); ++i) {
    if (small_results_[i] != kDropped) results_[small_results_[i]].digest = digests[i];
  }
  small_results_.clear();
}

std::vector<HashResult> TaskBatch::take() {
  hash_small();
  folder_.close();
  return std::exchange(results_, {});
}

bool racily_new(const hash::FileStamp& stamp, std::int64_t now_ns) {
  // Whole seconds in both times: a file system without finer ones (two seconds on FAT).
  const bool coarse = stamp.mtime_ns % kSecond == 0 && stamp.ctime_ns % kSecond == 0;
  const std::int64_t tick = coarse ? 2 * kSecond : kTicks;
  return now_ns - std::max(stamp.mtime_ns, stamp.ctime_ns) <= tick;
}

std::int64_t file_clock_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
  return base::nanoseconds(now);
}

std::int64_t file_system_clock_ns(const std::string& folder) {
  struct stat status {};
  if (::utimensat(AT_FDCWD, folder.c_str(), nullptr, 0) != 0 ||
      ::stat(folder.c_str(), &status) != 0) {
    return file_clock_ns();
  }
  return base::nanoseconds(status.st_mtim);
}

}  // namespace assay::lineage
