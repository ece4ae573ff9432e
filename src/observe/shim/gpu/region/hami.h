// Limits from HAMi's environment variables, for containers in which this library stands in the
// place of HAMi-core: hami_settings.cc reads them, hami.cc makes them the limits of a region.
#pragma once

#include "observe/shim/gpu/gpu.h"

namespace assay::gpu {

inline constexpr int kHamiDevices = 64;

struct HamiSettings {
  bool given = false;  // any limit at all
  // 0: nothing said, which is how HAMi reads a 0 as well. Of all devices, and of each by number.
  std::uint64_t bytes = 0;
  std::uint64_t bytes_of[kHamiDevices] = {};
  std::uint32_t share = 0;
  std::uint32_t share_of[kHamiDevices] = {};
  std::uint32_t priority = 0;  // GpuPriority
  const char* cache = nullptr;
  const char* odd = nullptr;  // the first variable that is not understood
};
// Reads what concerns us of an environment. Strings in the result are the environment's.
HamiSettings hami_settings(const char* const* environment);

// What the process got when it started.
const HamiSettings& hami();
// Whether there are limits, and no region was made for the run.
bool hami_wants_region();
// Opens the file of the region that all processes with these variables share, makes it if need be,
// and says where it is ("": it has no name, and children of this process share it). -1: cannot be.
int open_hami_region(char* path, std::size_t size);
// Writes the limits that hold for all devices into the region which was opened.
void set_hami_limits();
// And those of one, when it is first used.
void set_hami_limits(int ordinal, std::uint32_t line);
// Bytes that are said of the device with this number; 0: nothing.
std::uint64_t hami_limit_of(int ordinal);

}  // namespace assay::gpu
