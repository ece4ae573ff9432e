// Stamps as stat gives them, and what it takes to say that content did not change.
#pragma once

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

// What stands at a path: a regular file (a symbolic link is none) with its stamp, nothing, or
// something that we are not let see.
struct Standing {
  std::optional<wire::Stamp> stamp;
  bool hidden = false;
};

inline Standing standing_at(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) {
    return {.stamp = std::nullopt, .hidden = errno != ENOENT && errno != ENOTDIR};
  }
  if (!S_ISREG(status.st_mode)) return {};
  return {.stamp = to_wire(stamp_of(status))};
}

inline bool same_file(const wire::Stamp& a, const wire::Stamp& b) {
  return a.device == b.device && a.inode == b.inode;
}
// Nothing says that the content differs. The change time is left out: renaming, linking and chmod
// change it too, and the run may do those to a file that it has read.
inline bool same_content(const wire::Stamp& a, const wire::Stamp& b) {
  return same_file(a, b) && a.size == b.size && a.mtime_ns == b.mtime_ns;
}

// The file may hold what it held: everything is the same but the time of modification.
inline bool only_times_differ(const wire::Stamp& a, const wire::Stamp& b) {
  return same_file(a, b) && a.size == b.size && a.mtime_ns != b.mtime_ns;
}

}  // namespace assay::lineage
