// Limits from HAMi's environment variables, for containers in which this library replaces
// HAMi-core: hami_settings.cc reads them, hami.cc writes them into a region.
#pragma once

#include "observe/shim/gpu/gpu.h"
#include "observe/wire/gpu_region.h"

namespace assay::gpu {

inline constexpr int kHamiDevices = 64;

struct HamiSettings {
  bool given = false;  // any limit at all
  // 0: unset, as in HAMi. For all devices, and for each by index.
  std::uint64_t bytes = 0;
  std::uint64_t bytes_of[kHamiDevices] = {};
  std::uint32_t share = 0;
  std::uint32_t share_of[kHamiDevices] = {};
  std::uint32_t priority = 0;  // GpuPriority
  const char* cache = nullptr;
  const char* invalid = nullptr;  // the first variable with an invalid value
};
// Reads HAMi's variables. Strings in the result point into the environment.
HamiSettings hami_settings(const char* const* environment);

// From the environment at process start.
const HamiSettings& hami();
// Whether there are limits and no region of `assay run`.
bool hami_wants_region();
// Opens the file of the region that all processes with these variables share, creates it if
// necessary, and returns its path ("": unnamed, shared with children only). -1: failed.
int open_hami_region(char* path, std::size_t size);
// Writes the limits for all devices into the opened region.
void set_hami_limits();
// Writes those of one device, when it is first used.
void set_hami_limits(int ordinal, std::uint32_t device_index);
// Memory limit of the device with this index; 0: none.
std::uint64_t hami_limit_of(int ordinal);

}  // namespace assay::gpu
