// Shared by all parts of the library: this thread's block, the driver's real functions, whether
// anything is counted. README.md has the map of the folders:
//
//   lookup/  finds the real functions, and decides which caller gets a wrapper
//   region/  the run's region, this process's slot in it, blocks of threads
//   count/   wrappers that count
//   memory/  allocations and their limits
//   pace/    shares and priorities
//
// It runs inside arbitrary programs: no exceptions, no C++ runtime, no exit, nothing printed; when
// in doubt, calls are passed to the driver.
#pragma once

#include <stddef.h>

#include <atomic>
#include <cstdint>

#include "observe/wire/gpu_region.h"

#define ASSAY_EXPORTED __attribute__((visibility("default")))
#define ASSAY_HIDDEN __attribute__((visibility("hidden")))

extern "C" {

// Null until the thread counts for the first time.
extern ASSAY_HIDDEN __thread assay::wire::GpuBlock* assay_gpu_block
    __attribute__((tls_model("initial-exec")));

#define STUB(symbol, name, version, per_thread, quantity, bytes, scale) \
  extern ASSAY_HIDDEN std::atomic<void*> assay_gpu_real_##symbol;
#define FUNCTION(symbol, name, version, per_thread) \
  extern ASSAY_HIDDEN std::atomic<void*> assay_gpu_real_##symbol;
#define NCCL(symbol) extern ASSAY_HIDDEN std::atomic<void*> assay_gpu_real_##symbol;
#include "observe/shim/gpu/entries.inc"
#undef STUB
#undef FUNCTION
#undef NCCL

// Finds the driver's functions and gives this thread a block. False: there is no driver.
ASSAY_HIDDEN int assay_gpu_enter();
}

namespace assay::gpu {

using Result = int;  // CUresult
inline constexpr Result kOutOfMemory = 2;
inline constexpr Result kNotInitialized = 3;
inline constexpr Result kNotSupported = 801;

using wire::GpuQuantity;

// region/process.cc ---------------------------------------------------------------------------

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

// region/slots.cc -----------------------------------------------------------------------------

// Reclaims what exited processes of the run hold of a device. True if there were any.
bool reclaim_exited(std::size_t device_index);
// Field 22 of /proc/PID/stat; 0: no such process, or a zombie.
std::uint64_t start_ticks_of(int pid);
// The pid namespace of this process: pids are comparable only within one. 0: unknown.
std::uint64_t pid_namespace();

// Reset each module in the child of a fork (called by region/process.cc).
void forget_finders();
void forget_limits();
void forget_turns();

// pace/paced.cc ------------------------------------------------------------------------------

// Checks whether limits have changed: when the driver is found, and in calls that take microseconds
// anyway (synchronization, copies, allocations, graph launches). Kernel launches of an unlimited
// program are not affected.
void pacing_begins();
void limits_changed();
inline constinit std::atomic<std::uint64_t> seen_generation{0};
extern constinit std::atomic<bool> pacing;  // some device has a limit
inline void check_limits() {
  const wire::GpuRegion* counted = region();
  if (counted == nullptr) return;
  const std::uint64_t now = counted->header.generation.load(std::memory_order_relaxed);
  if (now != seen_generation.load(std::memory_order_relaxed)) limits_changed();
}

// lookup/driver.cc ----------------------------------------------------------------------------

bool driver_ready();
bool nccl_ready();
bool nvml_ready();

// Functions of the driver that are called but not wrapped; null if it has none.
struct Helpers {
  Result (*current_device)(int*);
  Result (*device_uuid)(unsigned char*, int);
  Result (*graph_nodes)(void*, void**, std::size_t*);
  Result (*node_type)(void*, int*);
  Result (*child_graph)(void*, void**);
  Result (*current_context)(void**);
  Result (*context_id)(void*, unsigned long long*);
  Result (*event_create)(void**, unsigned);
  Result (*event_record)(void*, void*);
  Result (*event_record_ptsz)(void*, void*);
  Result (*event_query)(void*);
  Result (*event_elapsed)(float*, void*, void*);
  Result (*is_capturing)(void*, int*);
  Result (*is_capturing_per_thread)(void*, int*);
  Result (*exchange_capture_mode)(int*);
  int (*nccl_count)(void*, int*);
  int (*nccl_rank)(void*, int*);
  // Memory.
  Result (*primary_state)(int, unsigned*, int*);
  Result (*default_pool)(void**, int);
  Result (*pool_attribute)(void*, int, void*);
  Result (*graph_memory)(int, int, void*);
  Result (*allocation_node)(void*, void*);
  Result (*free_node)(void*, std::uint64_t*);
  // NVML's.
  int (*nvml_init)();
  int (*nvml_uuid)(void*, char*, unsigned);
  int (*nvml_index)(void*, unsigned*);
  int (*nvml_by_uuid)(const char*, void**);
  int (*nvml_processes)(void*, unsigned*, void*);
};
extern constinit Helpers helpers;

// The wrapper of the real function at this address, or null.
void* wrapper_of(const void* real);
// Whether a symbol of this name is wrapped.
bool is_wrapped_name(const char* name);

// A real function with its type.
template <typename Signature>
inline Signature* real(const std::atomic<void*>& of) {
  return reinterpret_cast<Signature*>(of.load(std::memory_order_acquire));
}

}  // namespace assay::gpu

// First line of a wrapper's body: finds the real function, or returns an error if there is none.
#define ASSAY_REAL(symbol)                                                        \
  if (!assay::gpu::driver_ready()) return assay::gpu::kNotInitialized;            \
  auto* const next = assay::gpu::real<decltype(symbol)>(assay_gpu_real_##symbol); \
  if (next == nullptr) return assay::gpu::kNotSupported
