// Work in flight in a lane: events recorded after it ("marks"), costs learnt when the device passes
// them, and charging the run. All functions need the lane's lock.
#pragma once

#include <cstdint>

#include "observe/shim/gpu/pace/lanes.h"

namespace assay::gpu {

// Adds launched work: its start and estimated duration. Not known: the duration is assumed for lack
// of an estimate.
void add_work(Lane& lane, std::uint64_t ns, std::uint64_t since, bool known = true);
// Finds the marks that have been passed, and learns from timed ones.
void collect(Lane& lane, std::uint64_t now);
// Estimated work that has not run yet.
std::uint64_t ahead_of(const Lane& lane, std::uint64_t now);
bool is_drained(const Lane& lane, std::uint64_t now);
// A thread synchronized at this time: everything has run.
void drained(Lane& lane, std::uint64_t at);
// Charges the run for the time during which work was in flight.
void settle(Lane& lane, std::uint64_t now);

// A pair of events, the first recorded if something is to be timed; -1: none available.
int take_pair(Lane& lane, bool timed, void* stream, bool per_thread);
// Records the second event, which marks all unmarked work.
void put_mark(Lane& lane, int pair, bool timed, std::uint32_t place, void* stream, bool per_thread);
// The driver reported an error: events are dropped, and after several errors no longer used.
void reset_events(Lane& lane);

}  // namespace assay::gpu
