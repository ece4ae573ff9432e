#include "observe/collect/inherited.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <climits>
#include <memory>
#include <string_view>

#include "observe/collect/clock.h"
#include "observe/collect/stamp.h"

namespace assay::collect {
namespace {

std::vector<int> open_descriptors() {
  struct CloseDir {
    void operator()(DIR* dir) const { ::closedir(dir); }
  };
  const std::unique_ptr<DIR, CloseDir> dir(::opendir("/proc/self/fd"));
  std::vector<int> out;
  if (!dir) return out;
  while (const dirent* entry = ::readdir(dir.get())) {
    const std::string_view name = entry->d_name;
    int descriptor = -1;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), descriptor);
    if (error != std::errc{} || end != name.data() + name.size()) continue;
    if (descriptor == ::dirfd(dir.get())) continue;
    if ((::fcntl(descriptor, F_GETFD) & FD_CLOEXEC) == 0) out.push_back(descriptor);
  }
  return out;
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
    // A file without a name (memfd, deleted) is nothing that anybody could find again.
    if (length <= 0 || path[0] != '/' || status.st_nlink == 0) continue;
    const int flags = ::fcntl(descriptor, F_GETFL);
    if ((flags & O_PATH) != 0) continue;
    const int access = flags & O_ACCMODE;
    out.push_back({descriptor, access != O_WRONLY, access != O_RDONLY,
                   std::string(path.data(), static_cast<std::size_t>(length)), stamp_of(status)});
  }
  return out;
}

void append_inherited(const std::vector<Inherited>& files, pid_t command, Log& log) {
  for (const Inherited& file : files) {
    std::uint16_t flags = 0;
    if (file.readable && file.writable) flags |= wire::flag::kWritable;
    if (file.racy) flags |= wire::flag::kRacy;
    log.append({.op = file.readable ? wire::Op::kRead : wire::Op::kWrite,
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
