// Paces the work of a limited run: each piece of work is charged to its thread's budget; when that
// is used up, the thread goes to the pacing point, where it waits for the run's turn and for work
// in flight.
//
// - paced.cc: which entry points are paced, the launch path in assembly, and the slow path when the
//   budget is used up
// - pace.cc: the pacing point
// - lanes.h: contexts and their limits
// - marks.h: work in flight: events, estimates, charges
// - costs.h: costs of work, and their correction factor
// - budgets.h: how much a thread may launch until its next pacing point
// - turns.h: the file of turns
#pragma once

#include <cstdint>

#include "observe/shim/gpu/pace/costs.h"
#include "observe/shim/gpu/pace/paced.h"
#include "observe/shim/gpu/region/region.h"

namespace assay::gpu {

struct Lane;

// A piece of work between before_launch and after_launch.
struct LaunchTicket {
  Lane* lane = nullptr;     // null: nothing more to do
  std::uint32_t place = 0;  // index of its cost
  int pair = -1;            // of events
  bool timed = false;       // between the two
  void* stream = nullptr;
  bool per_thread = false;  // kind of the default stream
};
// Work of one call of the driver: a kernel, a graph, a copy or a memset.
struct GpuWorkItem {
  std::uint32_t place;  // index of its cost
  void* stream;
  bool per_thread;               // the default stream is per thread
  std::uint64_t assumed_ns = 0;  // assumed duration until it is known; 0: unknown
};
// Waits as long as necessary. `subtracted` is what was charged to the thread's budget for it.
LaunchTicket before_launch(const GpuWorkItem& work, std::uint32_t subtracted);
void after_launch(const LaunchTicket& ticket);

template <typename Call>
Result checked(const GpuWorkItem& work, std::uint32_t subtracted, Call call) {
  const LaunchTicket ticket = before_launch(work, subtracted);
  const Result result = call();
  after_launch(ticket);
  return result;
}

// C++ version of the launch path, for calls that take microseconds anyway.
template <typename Call>
Result paced(const GpuWorkItem& work, Call call) {
  check_limits();
  if (!pacing.load(std::memory_order_relaxed)) return call();
  wire::GpuBlock& mine = block();
  const std::uint32_t cost = cost_of(work.place);
  const std::int64_t left = mine.budget.load(std::memory_order_relaxed) - cost;
  mine.budget.store(left, std::memory_order_relaxed);
  return left >= 0 ? call() : checked(work, cost, call);
}
template <typename Call>
Result paced_copy(CopyKind kind, std::uint64_t bytes, void* stream, bool per_thread, Call call) {
  return paced({copy_place(kind, bytes), stream, per_thread, assumed_copy_ns(kind, bytes)}, call);
}

// A thread has synchronized, waiting since `from_ns`: with the whole context, or with a stream or
// event.
void after_wait(std::uint64_t from_ns, bool whole_context);

}  // namespace assay::gpu
