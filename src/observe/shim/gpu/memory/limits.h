// Memory that is reserved before the driver is called, by device of the region.
#pragma once

#include "observe/shim/gpu/gpu.h"

namespace assay::gpu {

// devices.cc ---------------------------------------------------------------------------------

// Where memory comes from: the device's line in the region (kGpuDevices: none, or not known), and a
// number by which its context's allocations are found again when that is destroyed.
struct Place {
  std::uint32_t line = wire::kGpuDevices;
  std::uint32_t context = 0;  // even; the lowest bit is for memory from pools
};
inline constexpr std::uint32_t kFromPool = 1;

// Of the device with this number in this process.
std::uint32_t line_of(int ordinal);
// The number in this process of a device that was used; -1: none.
int ordinal_of(std::uint32_t line);
// Of the current context.
Place current_place();
std::uint32_t number_of_context(const void* context);
// A context is gone, and its address may be another's.
void forget_places();

// memory.cc: a context is gone, and with it what was allocated in it.
void forget_context(std::uint32_t context);

// limits.cc ----------------------------------------------------------------------------------

// 0: none.
std::uint64_t limit_of(std::uint32_t line);
// Bytes of the device that the whole run has.
std::uint64_t used_of(std::uint32_t line);
// How much of a limit is left.
std::uint64_t left_of(std::uint32_t line, std::uint64_t limit);

// False: it would be more than the limit. What cannot be accounted for (no device, no slot, sizes
// beyond all reason) is the driver's to judge: then `line` is kGpuDevices afterwards.
bool reserve(std::uint32_t& line, std::uint64_t bytes);
// Its parts: what has changed meanwhile; once; and what can be done before it is tried again.
void look_before(std::uint32_t line);
bool try_hold(std::uint32_t& line, std::uint64_t bytes);
bool free_some(std::uint32_t line);  // whether that was anything
// After the driver has given what was reserved.
void note_peak(std::uint32_t line);
void give_back(std::uint32_t line, std::uint64_t bytes);
// What is there already, beyond the limit if need be.
void add_anyway(std::uint32_t line, std::uint64_t bytes);
// What of this process's memory is its context's and modules', which is added or given back.
void set_overhead(std::uint32_t line, std::uint64_t bytes);
// The same for who only wants to know, at most ten times a second.
void reclaim_now_and_then(std::uint32_t line);

// overhead.cc: asks NVML what contexts and modules take, now and then.
void check_overhead(std::uint32_t line);

// pools.cc: the place of a pool's memory (null: the current device's), from the current one. False:
// a pool that is not known.
bool pool_of(void* pool, Place& place);
// As `reserve`, before an allocation from a pool: `more` is what it wants beyond what pools keep.
bool reserve_from_pool(std::uint32_t& line, std::uint64_t bytes, std::uint64_t& more);
// And after it: the driver has given it, or has refused.
void pool_gave(std::uint32_t line, std::uint64_t more);
void pool_refused(std::uint32_t line, std::uint64_t bytes, std::uint64_t more);
void pool_took_back(std::uint32_t line, std::uint64_t bytes);
// Charges what pools of the device have now.
void settle_pools(std::uint32_t line);
// The same after a thread has waited for the device, if anything was freed before.
void settle_all_freed();
extern constinit std::atomic<bool> pools_freed;
inline void settle_freed_pools() {
  if (pools_freed.load(std::memory_order_relaxed)) settle_all_freed();
}
// Has the driver take back what pools of this process keep. Whether there was any.
bool trim_pools(std::uint32_t line);
void forget_pools();
void forget_overhead();

// graph_memory.cc: what allocation nodes of a graph will want at most at a time, if its nodes run
// in the order in which they were made, in KiB.
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
  Block* blocks_ = nullptr;  // that are allocated and not freed yet
  std::size_t number_ = 0;
  std::size_t capacity_ = 0;
  std::uint64_t now_ = 0;
  std::uint64_t peak_ = 0;
};
// Before a graph that has such nodes is launched on the current device, and after it. False: it
// would be more than the limit.
struct GraphMemory {
  std::uint32_t line = wire::kGpuDevices;
  std::uint64_t more = 0;  // reserved for this launch
};
bool reserve_for_graph(std::uint32_t kibibytes, GraphMemory& memory);
void forget_graph_memory();
void graph_launched(const GraphMemory& memory, std::uint32_t kibibytes, Result result);

}  // namespace assay::gpu
