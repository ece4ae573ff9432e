// Folders where programs constantly look for libraries, settings and devices: what they ask for and
// list there is not reported, except inside the project, wherever that lies (bpf/lookup.h has the
// same list as numbers).
//
// Used inside the target process: no allocation.
#pragma once

#include <stddef.h>
#include <string.h>

namespace assay::wire {

inline bool is_system_path(const char* path) {
  static constexpr const char* kFolders[] = {"/usr/", "/lib",  "/etc/", "/proc/", "/sys/",
                                             "/dev/", "/run/", "/var/", "/bin/",  "/sbin/"};
  for (const char* folder : kFolders) {
    if (strncmp(path, folder, strlen(folder)) == 0) return true;
  }
  return false;
}

// Whether `path` is the folder or lies below it. An empty folder has nothing below it.
inline bool is_below(const char* path, const char* folder, size_t length) {
  return length > 0 && strncmp(path, folder, length) == 0 &&
         (path[length] == '/' || path[length] == 0);
}

}  // namespace assay::wire
