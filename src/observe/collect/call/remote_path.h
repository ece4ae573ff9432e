// What a path means to a stopped thread: its directory descriptors, working directory, root and
// /proc/self are not ours. A file is found as a descriptor that can neither read nor block
// (O_PATH), with its state and its canonical path. Used by path_call.cc.
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

// A file that is there, or the error with which looking for it ended.
struct Found {
  int error = 0;
  base::UniqueFd fd;  // O_PATH
  struct stat status {};
  // Canonical, in the collector's view; only of regular files and directories. Not absolute where
  // the collector, in another mount namespace, does not find the file by it.
  std::string path;

  static Found none(int error) {
    Found found;
    found.error = error;
    return found;
  }
  // It is there, but its path is longer than the kernel tells (PATH_MAX), as below a very deep
  // working directory: `error` is ENAMETOOLONG, though the call will not fail.
  [[nodiscard]] bool is_untold() const { return error == ENAMETOOLONG && fd.valid(); }
  // From here on it counts as found, without a path, if it is_untold(); whether it was.
  bool accept_untold() {
    if (!is_untold()) return false;
    error = 0;
    return true;
  }
  [[nodiscard]] bool regular() const { return error == 0 && S_ISREG(status.st_mode); }
  [[nodiscard]] bool directory() const { return error == 0 && S_ISDIR(status.st_mode); }
};

// The directory that holds (or would hold) a path's last component, which need not exist.
struct FoundName {
  int error = 0;
  Found parent;
  std::string name;             // last component, without slashes
  bool only_directory = false;  // the path ended in a slash
  Found file;                   // what the name means now, links not followed; ENOENT: nothing

  [[nodiscard]] std::string path() const;
  // As Found's, of the directory or of the two together.
  bool accept_untold() {
    if (error != ENAMETOOLONG || !parent.fd.valid()) return false;
    error = parent.error = 0;
    return true;
  }
};

class RemoteView {
 public:
  explicit RemoteView(pid_t thread) : thread_(thread) {}

  [[nodiscard]] pid_t thread() const { return thread_; }
  // Thread group, or 0 when the thread is gone.
  [[nodiscard]] pid_t process() const;

  // `dirfd` is the thread's; `resolve` as in openat2's structure.
  [[nodiscard]] Found find(int dirfd, std::string_view path, bool follow,
                           std::uint64_t resolve = 0) const;
  // The file behind a descriptor of the thread.
  [[nodiscard]] Found find_descriptor(int fd) const;
  // Fails only if the directory cannot be found.
  [[nodiscard]] FoundName find_name(int dirfd, std::string_view path,
                                    std::uint64_t resolve = 0) const;
  // The name that creating `path` would make: symbolic links to nothing are followed, up to the
  // kernel's limit, when `follow` is set.
  [[nodiscard]] FoundName find_creation(int dirfd, std::string_view path, bool follow,
                                        std::uint64_t resolve = 0) const;

  // Whether the thread may do `mode` (R_OK …) to what was found, as far as can be told from here.
  [[nodiscard]] bool may(const Found& found, int mode) const;

  // Called when some process of the command may have come to see another file tree than we do.
  // From then on every path is walked step by step, inside the thread's own root.
  static void views_may_differ(bool differ = true);

 private:
  // A base is a descriptor of ours, so that it can be the thread's directory or one found later.
  [[nodiscard]] base::UniqueFd open_base(int dirfd) const;
  [[nodiscard]] Found find_from(int base, std::string_view path, bool follow,
                                std::uint64_t resolve) const;
  [[nodiscard]] FoundName name_from(int base, std::string_view path, std::uint64_t resolve) const;
  [[nodiscard]] bool find_fast(int dirfd, std::string_view path, bool follow, std::uint64_t resolve,
                               Found& found) const;
  // remote_walk.cc: one component after the other, from `base` (or the root, if absolute).
  [[nodiscard]] Found walk(int base, std::string_view path, bool follow) const;

  pid_t thread_;
};

// Fills status and path of an O_PATH descriptor.
Found describe(base::UniqueFd fd);

// Whether a path leads into the collector's own /proc entry, where a "self" of ours was followed
// instead of the thread's.
bool in_own_proc(std::string_view path);

}  // namespace assay::collect
