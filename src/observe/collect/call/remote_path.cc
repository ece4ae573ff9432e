#include "observe/collect/call/remote_path.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <utility>

#include "observe/collect/event/project_folder.h"

namespace assay::collect {
namespace {

std::atomic<bool> views_differ = false;

constexpr std::uint64_t kScoped = RESOLVE_BENEATH | RESOLVE_IN_ROOT;
// Prefix of the path of a file in another mount namespace that is not at that path here. No
// absolute path begins like this, so the two cannot be confused.
constexpr std::string_view kElsewhere = "elsewhere:";
constexpr std::string_view kDeleted = " (deleted)";  // the kernel's suffix for a path that is gone

int open_path(int base, const char* path, bool follow, std::uint64_t resolve) {
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC | (follow ? 0U : unsigned{O_NOFOLLOW});
  how.resolve = resolve & ~std::uint64_t{RESOLVE_CACHED};  // it only makes a call give up earlier
  return static_cast<int>(::syscall(SYS_openat2, base, path, &how, sizeof how));
}

// "/proc/TID/cwd" or "/proc/TID/fd/N".
struct BaseName {
  std::array<char, 48> text{};
  BaseName(pid_t thread, int dirfd) {
    char* end = dirfd == AT_FDCWD ? fmt::format_to(text.data(), "/proc/{}/cwd", thread)
                                  : fmt::format_to(text.data(), "/proc/{}/fd/{}", thread, dirfd);
    *end = '\0';
  }
};

// Takes "//", "." and ".." out of an absolute path that is known to hold no symbolic links.
std::string without_dots(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  while (!text.empty()) {
    const std::size_t begin = text.find_first_not_of('/');
    if (begin == std::string_view::npos) break;
    text.remove_prefix(begin);
    const std::string_view name = text.substr(0, text.find('/'));
    text.remove_prefix(name.size());
    if (name == ".") continue;
    if (name == "..") {
      clean.resize(clean.empty() ? 0 : clean.rfind('/'));
    } else {
      clean += '/';
      clean += name;
    }
  }
  if (clean.empty()) clean = "/";
  return clean;
}

struct Split {
  std::string_view directory;
  std::string_view name;
  bool only_directory = false;
};

Split split(std::string_view path) {
  Split parts;
  while (path.size() > 1 && path.back() == '/') {
    parts.only_directory = true;
    path.remove_suffix(1);
  }
  const std::size_t slash = path.rfind('/');
  parts.name = path.substr(slash == std::string_view::npos ? 0 : slash + 1);
  parts.directory = slash == std::string_view::npos ? "." : path.substr(0, slash + 1);
  return parts;
}

// What the last component refers to now, in a directory that was found.
RemoteName with_name(RemoteFile parent, const Split& parts) {
  RemoteName name;
  name.only_directory = parts.only_directory;
  if (parent.error == 0 && !parent.directory()) parent.error = ENOTDIR;
  if (parent.error == 0 && (parts.name.empty() || parts.name == "." || parts.name == "..")) {
    parent.error = EINVAL;
  }
  name.error = parent.error;
  name.parent = std::move(parent);
  name.name = parts.name;
  if (name.error != 0 && !name.parent.has_too_long_path()) return name;
  if (::fstatat(name.parent.fd.get(), name.name.c_str(), &name.file.status,
                AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) != 0) {
    name.file.error = errno;
  } else {
    name.file.path = name.path();
  }
  if (name.parent.path.size() + 1 + name.name.size() >= PATH_MAX) name.error = ENAMETOOLONG;
  return name;
}

}  // namespace

std::string RemoteName::path() const {
  std::string text = parent.path;
  if (text != "/") text += '/';
  return text += name;
}

namespace {

// Whether the path leads to the same file in the collector's view; not if the file has lost its
// name.
bool is_ours(const RemoteFile& found) {
  if (found.status.st_nlink == 0) return true;
  struct stat here {};
  return ::lstat(found.path.c_str(), &here) == 0 && here.st_ino == found.status.st_ino &&
         here.st_dev == found.status.st_dev;
}

}  // namespace

RemoteFile describe(base::UniqueFd fd) {
  RemoteFile found;
  if (!fd.valid() || ::fstat(fd.get(), &found.status) != 0) return RemoteFile::none(errno);
  if (S_ISREG(found.status.st_mode) || S_ISDIR(found.status.st_mode)) {
    std::array<char, 32> link{};
    *fmt::format_to(link.data(), "/proc/self/fd/{}", fd.get()) = '\0';
    std::array<char, PATH_MAX> text;
    const ssize_t length = ::readlink(link.data(), text.data(), text.size());
    if (length < 0) found.error = errno;
    found.path.assign(text.data(), static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
    if (length >= 0 && views_differ.load(std::memory_order_relaxed) && !is_ours(found)) {
      found.path.insert(0, kElsewhere);
    }
  }
  found.fd = std::move(fd);
  return found;
}

bool in_own_proc(std::string_view path) {
  static const std::string own = fmt::format("/proc/{}", ::getpid());
  return path.starts_with(own) && (path.size() == own.size() || path[own.size()] == '/');
}

std::string RemoteView::spelled(int dirfd, std::string_view path,
                                std::string_view canonical) const {
  // Names of another root or mount namespace mean nothing here.
  if (path.empty() || path == canonical || views_differ.load(std::memory_order_relaxed)) return {};
  std::string text(path);
  // Links there (/proc/self, /dev/stdin) are not ones that users change.
  if (path.front() == '/') return is_unreported(text) ? std::string() : text;
  std::string_view rest = path;
  while (rest.starts_with('/') || rest.starts_with("./") || rest.starts_with("../")) {
    rest = rest.substr(rest.find('/') + 1);
  }
  if (canonical.size() > rest.size() && canonical.ends_with(rest) &&
      canonical[canonical.size() - rest.size() - 1] == '/') {
    return {};
  }
  std::array<char, PATH_MAX> base{};
  const ssize_t length = ::readlink(BaseName(thread_, dirfd).text.data(), base.data(), base.size());
  constexpr std::string_view kRemoved = " (deleted)";  // the kernel's suffix
  const std::string_view folder(base.data(),
                                static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
  if (!folder.starts_with('/') || folder.ends_with(kRemoved)) return {};
  return std::string(folder).append("/").append(path);
}

void RemoteView::views_may_differ(bool differ) {
  views_differ.store(differ, std::memory_order_relaxed);
}

base::UniqueFd RemoteView::open_base(int dirfd) const {
  return base::UniqueFd(::open(BaseName(thread_, dirfd).text.data(), O_PATH | O_CLOEXEC));
}

// The usual case in as few system calls as possible: the path made absolute as text, and no
// symbolic link on the way, so that the text is the canonical path. False when this cannot decide.
bool RemoteView::find_fast(int dirfd, std::string_view path, bool follow, std::uint64_t resolve,
                           RemoteFile& found) const {
  if (views_differ.load(std::memory_order_relaxed) || (resolve & kScoped) != 0) return false;
  std::array<char, PATH_MAX> text;
  std::size_t length = 0;
  if (path.front() != '/') {
    const ssize_t base = ::readlink(BaseName(thread_, dirfd).text.data(), text.data(), text.size());
    if (base <= 0 || text[0] != '/') return false;
    length = static_cast<std::size_t>(base);
    if (std::string_view(text.data(), length).ends_with(kDeleted)) return false;
    if (length < text.size()) text[length++] = '/';
  }
  if (length + path.size() >= text.size()) return false;
  text[length + path.copy(text.data() + length, path.size())] = '\0';
  length += path.size();

  const int fd = open_path(AT_FDCWD, text.data(), follow, resolve | RESOLVE_NO_SYMLINKS);
  if (fd >= 0) {
    found.fd.reset(fd);
    if (::fstat(fd, &found.status) != 0) return false;
    found.path = without_dots({text.data(), length});
    return true;
  }
  if (errno == ENOENT || errno == ENOTDIR || errno == EACCES || errno == ENAMETOOLONG ||
      errno == EXDEV || (errno == ELOOP && (resolve & RESOLVE_NO_SYMLINKS) != 0)) {
    found.error = errno;
    return true;
  }
  if (errno != ELOOP) return false;
  // A link was met. Those of /proc would lead through our own descriptors and directories.
  base::UniqueFd linked(open_path(AT_FDCWD, text.data(), follow, resolve | RESOLVE_NO_MAGICLINKS));
  if (!linked.valid()) return false;
  found = describe(std::move(linked));
  return found.error == 0 && !in_own_proc(found.path);
}

RemoteFile RemoteView::find_from(int base, std::string_view path, bool follow,
                                 std::uint64_t resolve) const {
  if ((resolve & kScoped) == 0) return walk_remote_path(*this, base, path, follow);
  const std::string text(path);
  return describe(
      base::UniqueFd(open_path(base, text.c_str(), follow, resolve | RESOLVE_NO_MAGICLINKS)));
}

RemoteFile RemoteView::find(int dirfd, std::string_view path, bool follow,
                            std::uint64_t resolve) const {
  if (path.empty()) return RemoteFile::none(ENOENT);
  RemoteFile found;
  if (find_fast(dirfd, path, follow, resolve, found)) return found;
  base::UniqueFd base;
  if (path.front() != '/' || (resolve & kScoped) != 0) {
    base = open_base(dirfd);
    if (!base.valid()) return RemoteFile::none(dirfd == AT_FDCWD ? errno : EBADF);
  }
  return find_from(base.get(), path, follow, resolve);
}

RemoteFile RemoteView::find_descriptor(int fd) const {
  base::UniqueFd opened = open_base(fd);
  if (!opened.valid()) return RemoteFile::none(fd == AT_FDCWD ? errno : EBADF);
  return describe(std::move(opened));
}

RemoteName RemoteView::find_name(int dirfd, std::string_view path, std::uint64_t resolve) const {
  if (path.empty()) return with_name(RemoteFile::none(ENOENT), {});
  const Split parts = split(path);
  return with_name(find(dirfd, parts.directory, true, resolve), parts);
}

RemoteName RemoteView::name_from(int base, std::string_view path, std::uint64_t resolve) const {
  if (path.empty()) return with_name(RemoteFile::none(ENOENT), {});
  const Split parts = split(path);
  return with_name(find_from(base, parts.directory, true, resolve), parts);
}

RemoteName RemoteView::find_creation(int dirfd, std::string_view path, bool follow,
                                     std::uint64_t resolve) const {
  RemoteName made = find_name(dirfd, path, resolve);
  for (int links = 0; follow && made.error == 0 && made.file.error == 0; ++links) {
    if (!S_ISLNK(made.file.status.st_mode)) break;
    std::array<char, PATH_MAX> target;
    const ssize_t length =
        ::readlinkat(made.parent.fd.get(), made.name.c_str(), target.data(), target.size());
    if (length <= 0 || links == kMostLinks || (resolve & kScoped) != 0) {
      made.error = ELOOP;
      break;
    }
    const base::UniqueFd base = std::move(made.parent.fd);
    made = name_from(base.get(), {target.data(), static_cast<std::size_t>(length)}, resolve);
  }
  return made;
}

}  // namespace assay::collect
