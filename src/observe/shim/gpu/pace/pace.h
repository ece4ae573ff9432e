// A limited run's launches: what one costs is taken from its thread's budget, and when that is used
// up the launch comes to the checkpoint, where it waits for the run's turn and for work in flight.
//
//   paced.cc   the launch path in assembly, what is called below zero, who is paced at all
//   pace.cc    the checkpoint
//   lanes.cc   contexts and their limits
//   marks.cc   what is in flight: events, estimates, what is charged
//   costs.cc   what launches cost
//   scale.h    by what that is off, as events tell
//   turns.cc   the file of turns
#pragma once

#include <cstdint>

#include "observe/shim/gpu/gpu.h"

namespace assay::gpu {

struct Lane;

// A launch between the two calls.
struct Ticket {
  Lane* lane = nullptr;     // null: nothing more to do
  std::uint32_t place = 0;  // of its cost
  int pair = -1;            // of events
  bool timed = false;       // between the two
  void* stream = nullptr;
  bool per_thread = false;  // the stream's kind, where it is the default one
};
// Waits as long as it must. `subtracted` is what the launch path took from the budget for it.
Ticket before_launch(std::uint32_t place, std::uint32_t subtracted, void* stream, bool per_thread);
void after_launch(const Ticket& ticket);

// A thread has waited for the device, from then on; for all of it or for a part.
void after_wait(std::uint64_t from_ns, bool whole_context);

}  // namespace assay::gpu
