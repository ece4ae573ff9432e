// The slow way to resolve a path: one component after the other.
#include "observe/collect/call/remote_path.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <string>
#include <utility>

#include "base/unique_fd.h"
#include "observe/collect/call/remote_status.h"

namespace assay::collect {
namespace {

using base::UniqueFd;

bool same_directory(int a, int b) {
  struct statx left {};
  struct statx right {};
  constexpr unsigned kMask = STATX_INO | STATX_MNT_ID;
  if (::statx(a, "", AT_EMPTY_PATH, kMask, &left) != 0) return false;
  if (::statx(b, "", AT_EMPTY_PATH, kMask, &right) != 0) return false;
  return left.stx_ino == right.stx_ino && left.stx_dev_major == right.stx_dev_major &&
         left.stx_dev_minor == right.stx_dev_minor && left.stx_mnt_id == right.stx_mnt_id;
}

bool on_proc(int fd) {
  struct statfs system {};
  return ::fstatfs(fd, &system) == 0 && system.f_type == PROC_SUPER_MAGIC;
}

// A link of /proc that leads straight to an open file or directory: its text need not be a path.
bool is_magic(int directory, const char* name) {
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_NO_MAGICLINKS;
  const UniqueFd fd(static_cast<int>(::syscall(SYS_openat2, directory, name, &how, sizeof how)));
  return !fd.valid() && errno == ELOOP;
}

struct Walk {
  const RemoteView& view;
  UniqueFd root;
  UniqueFd current;
  std::string rest;
  int links = 0;

  // "self" and "thread-self" depend on the process that resolves them, so they are resolved here.
  bool follow_self(const std::string& name) {
    if (name != "self" && name != "thread-self") return false;
    struct stat directory {};
    constexpr ino_t kProcRoot = 1;
    if (::fstat(current.get(), &directory) != 0 || directory.st_ino != kProcRoot) return false;
    struct stat ours {};
    const bool same_proc = ::stat("/proc", &ours) == 0 && ours.st_dev == directory.st_dev;
    const RemoteStatus status = read_remote_status(view.thread());
    const pid_t process = same_proc ? status.process : status.inner_process;
    const pid_t thread = same_proc ? view.thread() : status.inner_thread;
    rest = name == "self" ? fmt::format("{}/{}", process, rest)
                          : fmt::format("{}/task/{}/{}", process, thread, rest);
    return true;
  }

  // Follows the link at `name`; 0 on success, when either `current` or `rest` has changed.
  int follow(const std::string& name, bool last) {
    if (++links > kMostLinks) return ELOOP;
    if (on_proc(current.get())) {
      if (follow_self(name)) return 0;
      if (is_magic(current.get(), name.c_str())) {
        UniqueFd next(::openat(current.get(), name.c_str(), O_PATH | O_CLOEXEC));
        if (!next.valid()) return errno;
        current = std::move(next);
        return 0;
      }
    }
    std::array<char, PATH_MAX> text;
    const ssize_t length = ::readlinkat(current.get(), name.c_str(), text.data(), text.size());
    if (length < 0) return errno;
    const std::string target(text.data(), static_cast<std::size_t>(length));
    if (target.starts_with('/')) current = UniqueFd(::fcntl(root.get(), F_DUPFD_CLOEXEC, 0));
    rest = last ? target : target + "/" + rest;
    return 0;
  }

  int enter(const std::string& name, bool last, bool follow_last) {
    if (name == ".") return 0;
    if (name == ".." && same_directory(current.get(), root.get())) return 0;
    UniqueFd next(::openat(current.get(), name.c_str(), O_PATH | O_CLOEXEC | O_NOFOLLOW));
    if (!next.valid()) return errno;
    struct stat status {};
    if (::fstat(next.get(), &status) != 0) return errno;
    if (S_ISLNK(status.st_mode) && (!last || follow_last)) return follow(name, last);
    current = std::move(next);
    return 0;
  }
};

}  // namespace

RemoteFile walk_remote_path(const RemoteView& view, int base, std::string_view path, bool follow) {
  const std::string root = fmt::format("/proc/{}/root", view.thread());
  Walk walk{.view = view,
            .root = UniqueFd(::open(root.c_str(), O_PATH | O_CLOEXEC)),
            .current = {},
            .rest = std::string(path)};
  if (!walk.root.valid()) return RemoteFile::none(errno);
  const bool absolute = path.starts_with('/');
  walk.current = UniqueFd(::fcntl(absolute ? walk.root.get() : base, F_DUPFD_CLOEXEC, 0));
  if (!walk.current.valid()) return RemoteFile::none(EBADF);
  bool only_directory = path.ends_with('/');
  for (;;) {
    const std::size_t begin = walk.rest.find_first_not_of('/');
    if (begin == std::string::npos) break;
    const std::size_t end = walk.rest.find('/', begin);
    const std::string name = walk.rest.substr(begin, end - begin);
    // If only slashes follow the name, it must be a directory, and a link is followed.
    const bool last = end == std::string::npos;
    const bool slashes = !last && walk.rest.find_first_not_of('/', end) == std::string::npos;
    only_directory = only_directory || slashes;
    walk.rest = last ? "" : walk.rest.substr(end);
    if (const int error = walk.enter(name, last, follow || only_directory); error != 0) {
      return RemoteFile::none(error);
    }
  }
  RemoteFile found = describe(std::move(walk.current));
  if (only_directory && found.error == 0 && !found.directory()) found.error = ENOTDIR;
  return found;
}

}  // namespace assay::collect
