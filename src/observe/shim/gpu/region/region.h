// The run's region, this process's slot in it, and this thread's block.
#pragma once

#include "observe/shim/gpu/gpu.h"
#include "observe/wire/gpu_region.h"

extern "C" {

// Null until the thread counts for the first time.
extern ASSAY_HIDDEN __thread assay::wire::GpuBlock* assay_gpu_block
    __attribute__((tls_model("initial-exec")));
}

namespace assay::gpu {

using wire::GpuQuantity;

// process.cc ----------------------------------------------------------------------

// The region; null: nothing is counted or replaced. Decided once.
wire::GpuRegion* region();
// This process's slot in it; -1 if it has none.
int slot();
// This thread's block: in the region or, if that is full, one that is never read.
wire::GpuBlock& block_of_thread();

inline wire::GpuBlock& block() {
  wire::GpuBlock* mine = assay_gpu_block;
  return mine != nullptr ? *mine : block_of_thread();
}

inline void add(std::atomic<std::uint64_t>& to, std::uint64_t amount) {
  to.store(to.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
}
inline void count(GpuQuantity quantity, std::uint64_t amount = 0, std::uint64_t calls = 1) {
  wire::GpuCount& counted = block().counts[static_cast<std::size_t>(quantity)];
  add(counted.calls, calls);
  add(counted.amount, amount);
}

// Adds a line to the file that ASSAY_GPU_LOG names, if it is set.
void log_line(const char* what);

// Whether limits have changed is checked in calls that take microseconds anyway (synchronization,
// copies, allocations, graph launches). Kernel launches of an unlimited program are not affected.
inline constinit std::atomic<std::uint64_t> seen_generation{0};
inline void check_limits() {
  const wire::GpuRegion* counted = region();
  if (counted == nullptr) return;
  const std::uint64_t now = counted->header.generation.load(std::memory_order_relaxed);
  if (now != seen_generation.load(std::memory_order_relaxed)) hooks.limits_changed();
}

// slots.cc ------------------------------------------------------------------------

// Reclaims what exited processes of the run hold of a device. True if there were any.
bool reclaim_exited(std::size_t device_index);
// Field 22 of /proc/PID/stat; 0: no such process, or a zombie.
std::uint64_t start_ticks_of(int pid);
// The pid namespace of this process: pids are comparable only within one. 0: unknown.
std::uint64_t pid_namespace();

}  // namespace assay::gpu
