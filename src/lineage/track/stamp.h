// File stamps (device, inode, size, times) from stat(2), and what they say about content.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdint>
#include <optional>
#include <string>

#include "hash/file.h"
#include "observe/wire/record.h"

namespace assay::lineage {

using hash::stamp_of;

inline hash::FileStamp to_hash(const wire::Stamp& stamp) {
  return {stamp.device, stamp.inode, stamp.size, stamp.mtime_ns, stamp.ctime_ns};
}
inline wire::Stamp to_wire(const hash::FileStamp& stamp) {
  return {stamp.device, stamp.inode, stamp.size, stamp.mtime_ns, stamp.ctime_ns};
}

// What is at a path: a regular file (not a symbolic link) with its stamp, nothing, or something
// that may not be accessed.
struct PathStatus {
  std::optional<wire::Stamp> stamp;
  bool inaccessible = false;
};

inline PathStatus status_at(int directory, const char* path) {
  struct stat status {};
  if (::fstatat(directory, path, &status, AT_SYMLINK_NOFOLLOW) != 0) {
    return {.stamp = std::nullopt, .inaccessible = errno != ENOENT && errno != ENOTDIR};
  }
  if (!S_ISREG(status.st_mode)) return {};
  return {.stamp = to_wire(stamp_of(status))};
}
inline PathStatus status_at(const std::string& path) {
  return status_at(AT_FDCWD, path.c_str());
}

inline bool same_file(const wire::Stamp& a, const wire::Stamp& b) {
  return a.device == b.device && a.inode == b.inode;
}
// Nothing indicates that the content differs. The ctime is not compared: renaming, linking and
// chmod change it too, and the run may do those to a file it has read.
inline bool same_content(const wire::Stamp& a, const wire::Stamp& b) {
  return same_file(a, b) && a.size == b.size && a.mtime_ns == b.mtime_ns;
}

// The content may be the same: all but the modification time is equal.
inline bool only_times_differ(const wire::Stamp& a, const wire::Stamp& b) {
  return same_file(a, b) && a.size == b.size && a.mtime_ns != b.mtime_ns;
}

}  // namespace assay::lineage
