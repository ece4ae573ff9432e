// stat's answer as a wire::Stamp.
#pragma once

#include <sys/stat.h>

#include "base/clock.h"
#include "observe/wire/record.h"

namespace assay::collect {

inline wire::Stamp stamp_of(const struct stat& status) {
  return {.device = status.st_dev,
          .inode = status.st_ino,
          .size = status.st_size,
          .mtime_ns = base::nanoseconds(status.st_mtim),
          .ctime_ns = base::nanoseconds(status.st_ctim)};
}

}  // namespace assay::collect
