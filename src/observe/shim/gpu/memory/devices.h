// Which device of the region memory belongs to: by the process's ordinal, and by context.
#pragma once

#include "observe/shim/gpu/gpu.h"
#include "observe/wire/gpu_region.h"

namespace assay::gpu {

// Where memory comes from: the device's index in the region, kGpuDevices if none or unknown; and a
// number of the context, by which its allocations are found when it is destroyed.
struct MemoryOrigin {
  std::uint32_t device_index = wire::kGpuDevices;
  std::uint32_t context = 0;  // even; the lowest bit is for memory from pools
};
inline constexpr std::uint32_t kFromPool = 1;

// The index in the region of the device with this ordinal in this process.
std::uint32_t device_index_of(int ordinal);
// The ordinal in this process of a device that was used; -1: none.
int ordinal_of(std::uint32_t device_index);
// Where the current context's memory comes from.
MemoryOrigin current_origin();
std::uint32_t number_of_context(const void* context);
// A context was destroyed, and its address may be reused.
void forget_origins();
// memory.cc: a context was destroyed, with everything allocated in it.
void forget_context(std::uint32_t context);

}  // namespace assay::gpu
