// How much memory this process has, as the kernel counts it. The file stays open: whoever asks
// every second opens nothing.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/unique_fd.h"

namespace assay::base {

struct MemorySize {
  std::int64_t resident_bytes = 0;  // 0: the kernel does not say
  std::int64_t peak_bytes = 0;      // the most that was ever resident
};

class ProcessMemory {
 public:
  ProcessMemory();
  [[nodiscard]] MemorySize now() const;

 private:
  UniqueFd status_;
};

// The text of /proc/PID/status.
MemorySize parse_memory_size(std::string_view status);

}  // namespace assay::base
