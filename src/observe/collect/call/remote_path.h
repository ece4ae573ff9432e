// Resolves a path as a stopped thread would: with its directory descriptors, working directory,
// root and /proc/self. A file is found as an O_PATH descriptor, which can neither read nor block,
// with its state and its canonical path. Used by stopped_call.cc.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/unique_fd.h"

namespace assay::collect {

constexpr int kMostLinks = 40;  // symbolic links in one path; the kernel's limit

// An existing file, or the error of the lookup.
struct RemoteFile {
  int error = 0;
  base::UniqueFd fd;  // O_PATH
  struct stat status {};
  // Canonical, in the collector's view; only of regular files and directories. Not absolute where
  // the collector, in another mount namespace, does not find the file by it.
  std::string path;

  static RemoteFile none(int error) {
    RemoteFile found;
    found.error = error;
    return found;
  }
  // It exists, but its path is longer than PATH_MAX, as below a very deep working directory:
  // `error` is ENAMETOOLONG, though the call will not fail.
  [[nodiscard]] bool has_too_long_path() const { return error == ENAMETOOLONG && fd.valid(); }
  // Whether it has_too_long_path(); then it counts as found, without a path.
  bool accept_too_long_path() {
    if (!has_too_long_path()) return false;
    error = 0;
    return true;
  }
  [[nodiscard]] bool regular() const { return error == 0 && S_ISREG(status.st_mode); }
  [[nodiscard]] bool directory() const { return error == 0 && S_ISDIR(status.st_mode); }
};

// The directory that holds (or would hold) a path's last component, which need not exist.
struct RemoteName {
  int error = 0;
  RemoteFile parent;
  std::string name;             // last component, without slashes
  bool only_directory = false;  // the path ended in a slash
  RemoteFile file;              // what the name means now, links not followed; ENOENT: nothing

  [[nodiscard]] std::string path() const;
  // As RemoteFile's, for the directory, or for directory and name together.
  bool accept_too_long_path() {
    if (error != ENAMETOOLONG || !parent.fd.valid()) return false;
    error = parent.error = 0;
    return true;
  }
};

class RemoteView {
 public:
  explicit RemoteView(pid_t thread) : thread_(thread) {}

  [[nodiscard]] pid_t thread() const { return thread_; }
  // Thread group, or 0 when the thread has exited.
  [[nodiscard]] pid_t process() const;

  // `dirfd` is the thread's; `resolve` as in openat2's structure.
  [[nodiscard]] RemoteFile find(int dirfd, std::string_view path, bool follow,
                                std::uint64_t resolve = 0) const;
  // The file behind a descriptor of the thread.
  [[nodiscard]] RemoteFile find_descriptor(int fd) const;
  // Fails only if the directory cannot be found.
  [[nodiscard]] RemoteName find_name(int dirfd, std::string_view path,
                                     std::uint64_t resolve = 0) const;
  // The name that creating `path` would make: symbolic links to nothing are followed, up to the
  // kernel's limit, when `follow` is set.
  [[nodiscard]] RemoteName find_creation(int dirfd, std::string_view path, bool follow,
                                         std::uint64_t resolve = 0) const;

  // The path as the thread gave it, made absolute: its links are not followed. Empty if it is the
  // same as `canonical`, or cannot be determined.
  [[nodiscard]] std::string spelled(int dirfd, std::string_view path,
                                    std::string_view canonical) const;

  // Whether the thread has access `mode` (R_OK …) to the file, as far as the collector can
  // determine.
  [[nodiscard]] bool may(const RemoteFile& found, int mode) const;

  // Called when a process of the command may see another file tree than the collector. From then on
  // every path is resolved component by component, inside the thread's own root.
  static void views_may_differ(bool differ = true);

 private:
  // A base is a descriptor of the collector: the thread's directory, or one found on the way.
  [[nodiscard]] base::UniqueFd open_base(int dirfd) const;
  [[nodiscard]] RemoteFile find_from(int base, std::string_view path, bool follow,
                                     std::uint64_t resolve) const;
  [[nodiscard]] RemoteName name_from(int base, std::string_view path, std::uint64_t resolve) const;
  [[nodiscard]] bool find_fast(int dirfd, std::string_view path, bool follow, std::uint64_t resolve,
                               RemoteFile& found) const;

  pid_t thread_;
};

// RemoteView's slow way (remote_path_walk.cc): a path walked one component after the other inside
// the thread's own root, with the thread's /proc/self. Needed after chroot and in other mount
// namespaces, for /dev/stdin and /proc/self/fd/N, for deleted directories and for paths that are
// longer than one call takes. `base` is a descriptor of the collector, where a relative path
// begins.
RemoteFile walk_remote_path(const RemoteView& view, int base, std::string_view path, bool follow);

// Fills status and path of an O_PATH descriptor.
RemoteFile describe(base::UniqueFd fd);

// Whether a path leads into the collector's own /proc entry, because /proc/self was resolved for
// the collector instead of the thread.
bool in_own_proc(std::string_view path);

}  // namespace assay::collect
