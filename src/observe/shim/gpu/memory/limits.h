// Limits of memory, by device of the region: memory is reserved before the driver is called, and
// given back if it refuses.
#pragma once

#include "observe/shim/gpu/gpu.h"

namespace assay::gpu {

// The limit in bytes; 0: none.
std::uint64_t limit_of(std::uint32_t device_index);
// Bytes of the device held by the whole run.
std::uint64_t used_of(std::uint32_t device_index);
// What is left of a limit.
std::uint64_t left_of(std::uint32_t device_index, std::uint64_t limit);

// False: it would exceed the limit. What cannot be accounted for (no device, no slot, absurd sizes)
// is left to the driver: then `device_index` is kGpuDevices afterwards.
bool reserve(std::uint32_t& device_index, std::uint64_t bytes);
// Its parts: refresh the accounts; try once; free memory before the next try.
void refresh_accounts(std::uint32_t device_index);
bool try_reserve(std::uint32_t& device_index, std::uint64_t bytes);
bool release_unused(std::uint32_t device_index);  // true if anything was freed
// After the driver has allocated what was reserved.
void note_peak(std::uint32_t device_index);
void give_back(std::uint32_t device_index, std::uint64_t bytes);
// Memory that is already in use; may exceed the limit.
void add_unconditionally(std::uint32_t device_index, std::uint64_t bytes);
// Sets the overhead of this process's contexts and modules; the difference is added or returned.
void set_overhead(std::uint32_t device_index, std::uint64_t bytes);
// Reclaims memory of exited processes for queries, at most ten times a second.
void reclaim_rate_limited(std::uint32_t device_index);

// In the child of a fork.
void forget_limits();

}  // namespace assay::gpu
