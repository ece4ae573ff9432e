#include "observe/collect/call/remote_status.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/capability.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/process/proc.h"
#include "observe/collect/call/remote_path.h"

namespace assay::collect {
namespace {

// The field at `index` (or the last, for -1) of the line that starts with `name`; 0 if there is
// none.
template <class Number>
Number field(std::string_view status, std::string_view name, int index, int radix = 10) {
  std::size_t at = status.find(name);
  if (at == std::string_view::npos) return 0;
  std::string_view line = status.substr(at + name.size());
  line = line.substr(0, line.find('\n'));
  Number value = 0;
  for (int i = 0; index < 0 || i <= index; ++i) {
    const std::size_t begin = line.find_first_not_of(" \t");
    if (begin == std::string_view::npos) break;
    line.remove_prefix(begin);
    const auto parsed = std::from_chars(line.data(), line.data() + line.size(), value, radix);
    if (parsed.ec != std::errc()) break;
    line.remove_prefix(static_cast<std::size_t>(parsed.ptr - line.data()));
  }
  return value;
}

}  // namespace

RemoteStatus read_remote_status(pid_t thread) {
  RemoteStatus result;
  std::array<char, 32> name{};
  *fmt::format_to(name.data(), "/proc/{}/status", thread) = '\0';
  std::array<char, 4096> text;
  const std::string_view status = base::read_proc_file(name.data(), text);
  if (status.empty()) return result;
  result.valid = true;
  result.process = field<pid_t>(status, "\nTgid:", 0);
  result.inner_process = field<pid_t>(status, "\nNStgid:", -1);
  result.inner_thread = field<pid_t>(status, "\nNSpid:", -1);
  result.parent = field<pid_t>(status, "\nPPid:", 0);
  result.user = field<uid_t>(status, "\nUid:", 1);
  result.group = field<gid_t>(status, "\nGid:", 1);
  result.no_new_privileges = field<int>(status, "\nNoNewPrivs:", 0) != 0;
  result.filters = field<int>(status, "\nSeccomp_filters:", 0);
  const auto capabilities = field<std::uint64_t>(status, "\nCapEff:", 0, 16);
  result.administers = (capabilities >> CAP_SYS_ADMIN & 1U) != 0;
  return result;
}

bool in_other_mounts(pid_t thread) {
  const auto number = [](const std::string& path) {
    struct stat status {};
    return ::stat(path.c_str(), &status) == 0 ? status.st_ino : 0;
  };
  static const ino_t ours = number("/proc/self/ns/mnt");
  const ino_t theirs = number(fmt::format("/proc/{}/ns/mnt", thread));
  return ours != 0 && theirs != 0 && ours != theirs;
}

bool runs_as_root(pid_t thread) {
  std::array<char, 32> name{};
  *fmt::format_to(name.data(), "/proc/{}", thread) = '\0';
  struct stat status {};
  return ::stat(name.data(), &status) == 0 && status.st_uid == 0 && status.st_gid == 0;
}

pid_t RemoteView::process() const {
  return read_remote_status(thread_).process;
}

// The thread's permissions are ours unless we are root and it is not: if we are not root, no
// process can gain permissions, because the gate sets no_new_privs.
bool RemoteView::may(const RemoteFile& found, int mode) const {
  const unsigned bits = static_cast<unsigned>(mode);  // R_OK 4, W_OK 2, X_OK 1: as mode bits
  const unsigned everyone = bits * 0111U;
  // Nearly all calls read a world-readable file. Writing also depends on the file system (read-only
  // mounts).
  if (mode == R_OK && (found.status.st_mode & everyone) == everyone) return true;
  const long allowed =
      ::syscall(SYS_faccessat2, found.fd.get(), "", mode, AT_EACCESS | AT_EMPTY_PATH);
  if (allowed != 0 && errno != ENOSYS && errno != EINVAL) return false;
  static const bool root = ::geteuid() == 0;
  if (!root || (found.status.st_mode & everyone) == everyone || runs_as_root(thread_)) return true;
  const RemoteStatus status = read_remote_status(thread_);
  if (!status.valid || status.user == 0) return true;
  if (found.status.st_uid == status.user) return (found.status.st_mode & bits << 6U) == bits << 6U;
  // Its supplementary groups are not looked up: in doubt, access is assumed.
  return ((found.status.st_mode & bits << 3U) | (found.status.st_mode & bits) << 3U) == bits << 3U;
}

}  // namespace assay::collect
