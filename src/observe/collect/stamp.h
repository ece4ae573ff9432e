// stat's answer as a wire::Stamp.
#pragma once

#include <sys/stat.h>

#include "observe/wire/record.h"

namespace assay::collect {

inline wire::Stamp stamp_of(const struct stat& status) {
  const auto ns = [](const timespec& time) { return time.tv_sec * 1'000'000'000LL + time.tv_nsec; };
  return {.device = status.st_dev,
          .inode = status.st_ino,
          .size = status.st_size,
          .mtime_ns = ns(status.st_mtim),
          .ctime_ns = ns(status.st_ctim)};
}

}  // namespace assay::collect
