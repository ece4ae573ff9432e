// Folders where programs constantly look for libraries, settings and devices: missing files and
// listings there are not reported (bpf/absent.h has the same list as numbers).
//
// Used inside the target process: no allocation.
#pragma once

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

}  // namespace assay::wire
