// What is in flight in a lane: events behind it ("marks"), what they teach when they are passed,
// what the run is charged. All functions want the lane's lock.
#pragma once

#include <cstdint>

#include "observe/shim/gpu/pace/lanes.h"

namespace assay::gpu {

// More was launched, from a time on: so much, as it is estimated. Not known: assumed, for want of
// an estimate.
void add_work(Lane& lane, std::uint64_t ns, std::uint64_t since, bool known = true);
// Which marks have been passed; learns what was timed.
void collect(Lane& lane, std::uint64_t now);
// What is still to run.
std::uint64_t ahead_of(const Lane& lane, std::uint64_t now);
bool is_drained(const Lane& lane, std::uint64_t now);
// Everything has run, because a thread waited for it; and when that was.
void drained(Lane& lane, std::uint64_t at);
// Charges the run for the time in which work was in flight.
void settle(Lane& lane, std::uint64_t now);

// A pair of events with the first one recorded (if it is to time something); -1: there is none.
int take_pair(Lane& lane, bool timed, void* stream, bool per_thread);
// Records the second one and marks all unmarked work with it.
void put_mark(Lane& lane, int pair, bool timed, std::uint32_t place, void* stream, bool per_thread);
// The driver reported an error: events are forgotten, and after several errors not used any more.
void reset_events(Lane& lane);

}  // namespace assay::gpu
