#include "observe/collect/process/inherited.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>

#include "observe/collect/event/event.h"
#include "observe/collect/process/proc.h"

namespace assay::collect {
namespace {

// Descriptors without close-on-exec. The one used for listing is closed by now.
std::vector<int> open_descriptors() {
  std::vector<int> out = numbers_in("/proc/self/fd");
  std::erase_if(out, [](int descriptor) {
    const int flags = ::fcntl(descriptor, F_GETFD);
    return flags < 0 || (flags & FD_CLOEXEC) != 0;
  });
  return out;
}

void append_too_long(const Inherited& file, pid_t command, EventLog& log) {
  const std::string text = "the file that is open as descriptor " +
                           std::to_string(file.descriptor) + wire::kLongPathText;
  log.append({.op = wire::RecordOp::kMissed,
              .source = wire::Source::kInherited,
              .flags = wire::flag::kNoStamp,
              .thread = command,
              .process = command,
              .value = file.descriptor,
              .time_ns = monotonic_ns(),
              .path = wire::kLongPath,
              .other = text});
}

}  // namespace

std::vector<int> inherited_descriptors() {
  std::vector<int> out = open_descriptors();
  std::erase_if(out, is_standard_stream);
  return out;
}

std::vector<Inherited> inherited_files() {
  std::vector<Inherited> out;
  for (const int descriptor : open_descriptors()) {
    struct stat status {};
    if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) continue;
    std::array<char, PATH_MAX> path{};
    const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
    const ssize_t length = ::readlink(link.c_str(), path.data(), path.size());
    const bool too_long = length < 0 && errno == ENAMETOOLONG;
    // A file without a name (memfd, deleted) could not be found again.
    if (!too_long && (length <= 0 || path[0] != '/' || status.st_nlink == 0)) continue;
    const int flags = ::fcntl(descriptor, F_GETFL);
    if ((flags & O_PATH) != 0) continue;
    const int access = flags & O_ACCMODE;
    out.push_back({descriptor, access != O_WRONLY, access != O_RDONLY, (flags & O_APPEND) != 0,
                   std::string(path.data(), too_long ? 0 : static_cast<std::size_t>(length)),
                   stamp_of(status)});
  }
  return out;
}

void append_inherited(const std::vector<Inherited>& files, pid_t command, EventLog& log) {
  for (const Inherited& file : files) {
    if (file.path.empty()) {
      append_too_long(file, command, log);
      continue;
    }
    std::uint16_t flags = 0;
    if (file.readable && file.writable) flags |= wire::flag::kWritable;
    if (file.racy) flags |= wire::flag::kRacy;
    log.append({.op = file.readable ? wire::RecordOp::kRead : wire::RecordOp::kWrite,
                .source = wire::Source::kInherited,
                .flags = flags,
                .thread = command,
                .process = command,
                .value = file.descriptor,
                .time_ns = monotonic_ns(),
                .stamp = file.stamp,
                .path = file.path});
  }
}

}  // namespace assay::collect
