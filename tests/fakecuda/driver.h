// A libcuda.so.1 without a GPU: every entry point of the driver exists and counts its calls;
// devices, memory, graphs and time are modelled as far as tests need them. Set up by environment:
//
//   FAKECUDA_DEVICES=1             number of devices
//   FAKECUDA_MEMORY=1073741824     bytes of each
//   FAKECUDA_LAUNCH_NS=0           duration of a kernel, times the blocks of its grid and the
//                                  depth of a block; synchronizing waits for it
//   FAKECUDA_LAUNCH_HOST_NS=0      host time of a launch
//   FAKECUDA_COPY_NS=0             duration of copying a KiB between host and device
//   FAKECUDA_DEVICE_COPY_NS=0      duration of copying a MiB on the device; a memset takes half
//   FAKECUDA_EVENT_NS=0            duration of recording an event, in the stream: it is part of
//                                  the time between two events, as on a GPU
//   FAKECUDA_CLOCK=FILE            one GPU for all processes that name it (clock.h)
//   FAKECUDA_NO_EVENTS=1           events cannot be created
//   FAKECUDA_MIG=1                 devices are slices: cuDeviceGetUuid returns the card's UUID,
//                                  cuDeviceGetUuid_v2 the slice's
//   FAKECUDA_STATE=FILE            bytes used, shared with other processes
//   FAKECUDA_CONTEXT=0             bytes that a context takes
//   FAKECUDA_MODULE=0              bytes that a module takes
//   CUDA_VISIBLE_DEVICES           as in the driver, by number or UUID
//
// With FAKECUDA_BARE defined nothing is counted and a launch does nothing at all: for benchmarks.
//
// This header has what its sources share:
//   driver_entries.cc   every entry point by name, version and kind; those that only count
//   driver_devices.cc   devices, contexts, modules
//   driver_memory.cc    allocations, pools, mappings
//   driver_graphs.cc    launches, graphs; driver_captures.h: captures, and what invalidates them
//   driver_copies.cc    copies and memsets that take time
//   driver_events.cc    events, waiting
//   driver_lookup.cc    cuGetProcAddress, and the queries for tests (fakecuda.h)
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "memory.h"

namespace fakecuda {

enum Symbol : int {
#define PLAIN(name, version, per_thread, symbol) k_##symbol,
#define MODELLED(name, version, per_thread, symbol) k_##symbol,
#include "entries.inc"
#undef PLAIN
#undef MODELLED
  kSymbols
};

extern std::atomic<std::uint64_t> called[kSymbols];

inline void count(Symbol symbol) {
#ifdef FAKECUDA_BARE
  (void)symbol;
#else
  called[symbol].fetch_add(1, std::memory_order_relaxed);
#endif
}

using fake::kInvalidValue;
using fake::kMaxDevices;
using fake::kOk;
using fake::kOutOfMemory;
using fake::setting;
constexpr int kNotFound = 500;
constexpr int kNotReady = 600;

struct Driver {
  int physical[kMaxDevices] = {};
  int devices = fake::visible_devices(physical);
  std::uint64_t launch_ns = setting("FAKECUDA_LAUNCH_NS", 0);
  std::uint64_t launch_host_ns = setting("FAKECUDA_LAUNCH_HOST_NS", 0);
  std::uint64_t copy_ns = setting("FAKECUDA_COPY_NS", 0);
  std::uint64_t device_copy_ns = setting("FAKECUDA_DEVICE_COPY_NS", 0);
  std::uint64_t event_ns = setting("FAKECUDA_EVENT_NS", 0);
  bool mig = setting("FAKECUDA_MIG", 0) != 0;
};

inline Driver& driver() {
  static Driver the;
  return the;
}

inline constinit thread_local int current_device = 0;
// The primary context of device N is 0x1000 + N; others are above.
inline constinit thread_local std::intptr_t current_context = 0x1000;

inline int physical(int ordinal) {
  return driver().physical[ordinal >= 0 && ordinal < kMaxDevices ? ordinal : 0];
}

struct Graph;
struct Node {
  int type;  // as CUgraphNodeType: 0 kernel, 1 copy, 2 set, 4 child, 5 empty, 10 allocation, 11
             // free
  Graph* child;
  std::uint64_t bytes = 0;
  std::uint64_t blocks = 1;   // of a kernel's grid
  std::uint64_t address = 0;  // allocated or freed
  std::uint64_t ns = 0;       // of a copy or a memset
};
struct Graph {
  std::vector<Node*> nodes;
};
struct Executable {
  std::uint64_t nodes;
  std::uint64_t blocks;
  std::uint64_t bytes;  // peak
  std::uint64_t copies_ns;
};
inline constinit thread_local Graph* capturing = nullptr;

int add_node(void** node, void* graph, int type, Graph* child = nullptr, std::uint64_t bytes = 0,
             std::uint64_t blocks = 1, std::uint64_t address = 0, std::uint64_t ns = 0);
// Nodes of graphs that were launched.
extern std::atomic<std::uint64_t> nodes_run;

struct Entry {
  const char* name;
  int version;
  bool per_thread;
  const char* symbol;
  void* function;
};
extern const Entry kEntries[kSymbols];
// The newest version that is not newer than the caller's, of the requested kind. An entry without a
// variant for per-thread streams serves both.
const Entry* find(const char* name, int version, bool per_thread);

}  // namespace fakecuda
