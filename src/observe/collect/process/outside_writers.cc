#include "observe/collect/process/outside_writers.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <string>
#include <string_view>

#include "base/process/proc.h"
#include "observe/collect/process/proc.h"

namespace assay::collect {
namespace {

// The number after `key` in a small file of /proc, such as "flags:\t0100001".
std::optional<std::uint64_t> number_after(const std::string& path, std::string_view key, int base) {
  std::array<char, 1024> buffer;
  const std::string_view text = base::read_proc_file(path.c_str(), buffer);
  std::size_t at = text.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  at = text.find_first_not_of(" \t", at + key.size());
  if (at == std::string_view::npos) return std::nullopt;
  std::uint64_t number = 0;
  const auto [end, error] =
      std::from_chars(text.data() + at, text.data() + text.size(), number, base);
  return error == std::errc{} ? std::optional(number) : std::nullopt;
}

bool is_open_for_writing(const std::string& process, int descriptor) {
  const auto flags = number_after(process + "/fdinfo/" + std::to_string(descriptor), "flags:", 8);
  return flags && (*flags & O_ACCMODE) != O_RDONLY;
}

}  // namespace

OutsideWriters::OutsideWriters(std::span<const Inherited> files) : keeper_(::getppid()) {
  for (const Inherited& file : files) {
    if (!file.writable || is_standard_stream(file.descriptor)) continue;
    files_.emplace(file.stamp.device, file.stamp.inode);
  }
  before_ = scan();
}

OutsideWriters::Holders OutsideWriters::scan() const {
  Holders found;
  if (files_.empty()) return found;
  for (const int process : numbers_in("/proc")) {
    // The collector will close the descriptors, and the keeper has.
    if (process != ::getpid() && process != keeper_) scan_process(process, found);
  }
  return found;
}

void OutsideWriters::scan_process(pid_t process, Holders& found) const {
  const std::string place = "/proc/" + std::to_string(process);
  for (const int descriptor : numbers_in(place + "/fd")) {
    struct stat status {};
    if (::stat((place + "/fd/" + std::to_string(descriptor)).c_str(), &status) != 0) continue;
    const FileKey file{status.st_dev, status.st_ino};
    if (!files_.contains(file) || !is_open_for_writing(place, descriptor)) continue;
    const auto stat = base::process_stat(process);
    if (!stat || stat->has_ended()) return;
    found[file][{process, stat->start_ticks}] = number_after(place + "/io", "wchar:", 10);
  }
}

bool OutsideWriters::may_have_written(const wire::Stamp& file) const {
  if (!after_) after_ = scan();
  const FileKey key{file.device, file.inode};
  const auto before = before_.find(key);
  const auto after = after_->find(key);
  // A process that appeared, disappeared or cannot be inspected may have written; one whose counter
  // did not change has not.
  if (before == before_.end() || after == after_->end()) {
    return before != before_.end() || after != after_->end();
  }
  if (before->second.size() != after->second.size()) return true;
  for (const auto& [process, written] : after->second) {
    const auto then = before->second.find(process);
    if (then == before->second.end() || !written || then->second != written) return true;
  }
  return false;
}

}  // namespace assay::collect
