// Accounting of memory, by device of the region; reserved before the driver is called.
#pragma once

#include "observe/shim/gpu/gpu.h"

namespace assay::gpu {

// devices.cc ---------------------------------------------------------------------------------

// Where memory comes from: the device's line (index) in the region, kGpuDevices if none or unknown;
// and a number of the context, by which its allocations are found when it is destroyed.
struct MemoryOrigin {
  std::uint32_t line = wire::kGpuDevices;
  std::uint32_t context = 0;  // even; the lowest bit is for memory from pools
};
inline constexpr std::uint32_t kFromPool = 1;

// The line of the device with this ordinal in this process.
std::uint32_t line_of(int ordinal);
// The ordinal in this process of a device that was used; -1: none.
int ordinal_of(std::uint32_t line);
// The place of the current context's memory.
MemoryOrigin current_origin();
std::uint32_t number_of_context(const void* context);
// A context was destroyed, and its address may be reused.
void forget_origins();

// memory.cc: a context was destroyed, with everything allocated in it.
void forget_context(std::uint32_t context);

// limits.cc ----------------------------------------------------------------------------------

// The limit in bytes; 0: none.
std::uint64_t limit_of(std::uint32_t line);
// Bytes of the device held by the whole run.
std::uint64_t used_of(std::uint32_t line);
// What is left of a limit.
std::uint64_t left_of(std::uint32_t line, std::uint64_t limit);

// False: it would exceed the limit. What cannot be accounted for (no device, no slot, absurd sizes)
// is left to the driver: then `line` is kGpuDevices afterwards.
bool reserve(std::uint32_t& line, std::uint64_t bytes);
// Its parts: refresh the accounts; try once; free memory before the next try.
void refresh_accounts(std::uint32_t line);
bool try_reserve(std::uint32_t& line, std::uint64_t bytes);
bool release_unused(std::uint32_t line);  // true if anything was freed
// After the driver has allocated what was reserved.
void note_peak(std::uint32_t line);
void give_back(std::uint32_t line, std::uint64_t bytes);
// Memory that is already in use; may exceed the limit.
void add_unconditionally(std::uint32_t line, std::uint64_t bytes);
// Sets the overhead of this process's contexts and modules; the difference is added or returned.
void set_overhead(std::uint32_t line, std::uint64_t bytes);
// Reclaims memory of exited processes for queries, at most ten times a second.
void reclaim_rate_limited(std::uint32_t line);

// overhead.cc: queries NVML from time to time for the overhead of contexts and modules.
void check_overhead(std::uint32_t line);

// pools.cc: the place of a pool's memory (null: the current device's pool), derived from the
// current place. False: an unknown pool.
bool pool_of(void* pool, MemoryOrigin& place);
// As `reserve`, before an allocation from a pool: `more` is what it needs beyond what pools hold.
bool reserve_from_pool(std::uint32_t& line, std::uint64_t bytes, std::uint64_t& more);
// After the allocation: it succeeded, or was refused.
void pool_gave(std::uint32_t line, std::uint64_t more);
void pool_refused(std::uint32_t line, std::uint64_t bytes, std::uint64_t more);
void pool_took_back(std::uint32_t line, std::uint64_t bytes);
// Charges what pools of the device hold now.
void settle_pools(std::uint32_t line);
// The same after a synchronization, if anything was freed before.
void settle_all_freed();
extern constinit std::atomic<bool> pools_freed;
inline void settle_freed_pools() {
  if (pools_freed.load(std::memory_order_relaxed)) settle_all_freed();
}
// Returns unused memory of this process's pools to the driver. True if there was any.
bool trim_pools(std::uint32_t line);
void forget_pools();
void forget_overhead();

// graph_memory.cc: peak memory of a graph's allocation nodes, if its nodes run in the order of
// their creation, in KiB.
class GraphWalk {
 public:
  GraphWalk() = default;
  ~GraphWalk();
  GraphWalk(const GraphWalk&) = delete;
  GraphWalk& operator=(const GraphWalk&) = delete;
  void allocates(void* node);
  void frees(void* node);
  [[nodiscard]] std::uint32_t peak() const {
    return peak_ > ~std::uint32_t{0} ? ~std::uint32_t{0} : static_cast<std::uint32_t>(peak_);
  }

 private:
  struct Block {
    std::uint64_t address, kibibytes;
  };
  Block* blocks_ = nullptr;  // allocated and not yet freed
  std::size_t number_ = 0;
  std::size_t capacity_ = 0;
  std::uint64_t now_ = 0;
  std::uint64_t peak_ = 0;
};
// Before and after the launch of a graph with such nodes on the current device. False: it would
// exceed the limit.
struct GraphMemory {
  std::uint32_t line = wire::kGpuDevices;
  std::uint64_t more = 0;  // reserved for this launch
};
bool reserve_for_graph(std::uint32_t kibibytes, GraphMemory& memory);
void forget_graph_memory();
void graph_launched(const GraphMemory& memory, std::uint32_t kibibytes, Result result);

}  // namespace assay::gpu
