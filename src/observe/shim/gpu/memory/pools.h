// Memory pools: what is allocated from them, and what they hold.
#pragma once

#include "observe/shim/gpu/memory/devices.h"

namespace assay::gpu {

// Changes `place`, the current context's, to where a pool's memory (null: the current device's
// pool) comes from. False: an unknown pool.
bool pool_of(void* pool, MemoryOrigin& place);
// As `reserve`, before an allocation from a pool: `more` is what it needs beyond what pools hold.
bool reserve_from_pool(std::uint32_t& device_index, std::uint64_t bytes, std::uint64_t& more);
// After the allocation: it succeeded, or was refused.
void pool_gave(std::uint32_t device_index, std::uint64_t more);
void pool_refused(std::uint32_t device_index, std::uint64_t bytes, std::uint64_t more);
void pool_took_back(std::uint32_t device_index, std::uint64_t bytes);
// Charges what pools of the device hold now.
void settle_pools(std::uint32_t device_index);
// The same after a synchronization, if anything was freed before.
void settle_all_freed();
extern constinit std::atomic<bool> pools_freed;
inline void settle_freed_pools() {
  if (pools_freed.load(std::memory_order_relaxed)) settle_all_freed();
}
// Returns unused memory of this process's pools to the driver. True if there was any.
bool trim_pools(std::uint32_t device_index);
void forget_pools();

}  // namespace assay::gpu
