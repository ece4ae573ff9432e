// What a GPU did when, by CUPTI: kernels and copies with their times, on the device's own clock.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"

namespace assay::bench {

struct Overlap {
  double copied_ms = 0;   // time in which some copy ran
  double hidden_ms = 0;   // of it, time in which some kernel ran as well
  double kernels_ms = 0;  // time in which some kernel ran
  std::int64_t copies = 0;
  std::int64_t kernels = 0;
  // Copies by their size (0: of kernels that copy): how many, and how much of their time no kernel
  // ran beside.
  struct BySize {
    std::int64_t copies = 0;
    double ms = 0;
    double exposed_ms = 0;
  };
  std::map<std::uint64_t, BySize> by_size;
  // Times in which copies ran and no kernel: from the first record on, the longest first.
  struct Gap {
    double at_ms = 0;
    double ms = 0;
    std::string after;  // kernels that ended last before it, and began first after it
    std::string before;
  };
  std::vector<Gap> exposed;
  // Lines of "what, stream, channel, begin, end, name or bytes", times in ns: what is a kernel, or
  // a copy with CUpti_ChannelType (1: a compute channel, 2: copy engines; 0: a kernel that copies).
  std::string records;
};

class GpuTimeline {
 public:
  // Fails where CUPTI is missing, or another profiler uses it.
  static base::Result<void> start();
  // Waits for the device's records. Copies are those within the device, by the driver or by a
  // kernel.
  static base::Result<Overlap> stop();
};

}  // namespace assay::bench
