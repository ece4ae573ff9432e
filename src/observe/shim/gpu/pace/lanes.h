// Lanes: one per context, because events belong to contexts. A lane tracks what was launched in its
// context and has not run yet, by events and estimates.
//
// Events are used only while their context is current, so that it certainly exists, and are never
// destroyed: that happens with the context. Contexts are identified by numbers that are never
// reused.
#pragma once

#include <cstddef>
#include <cstdint>

#include "observe/shim/gpu/gpu.h"
#include "observe/shim/gpu/pace/costs.h"
#include "observe/shim/gpu/pace/turn_file.h"
#include "observe/shim/gpu/spin_lock.h"

namespace assay::gpu {

inline constexpr std::size_t kMarks = 24;

struct Pair {
  void* begin = nullptr;
  void* end = nullptr;
  bool taken = false;
};
// An event recorded after some work; if timed, also one before the launch with cost `place`.
struct Mark {
  int pair = -1;
  std::uint64_t cost_ns = 0;
  std::uint32_t place = 0;
  bool timed = false;
  bool follows = false;  // the previous mark was not yet passed when this one was recorded
  bool known = false;    // it covers no launch of unknown cost
  bool is_one = false;   // it covers only the timed launch
};

struct Lane {
  std::atomic<std::uint64_t> context{0};  // its id; 0: free
  std::atomic<std::uint32_t> users{0};
  std::uint64_t used_ns = 0;

  SpinLock lock;                 // for all that follows
  std::uint64_t generation = 0;  // of the limits; 0: not read yet
  bool limited = false;
  bool has_events = true;
  int failures = 0;
  std::uint32_t device_index = wire::kGpuDevices;
  TurnDevice* device = nullptr;
  std::size_t row = 0;
  TurnProcess* place = nullptr;

  Pair pairs[kMarks];
  Mark marks[kMarks];  // a ring
  std::size_t first = 0;
  std::size_t count = 0;
  int passed = -1;                 // the pair whose end was passed most recently
  std::uint64_t overtaken_ns = 0;  // estimated work of marks that were passed before it
  std::uint64_t marked_ns = 0;     // estimated work covered by marks
  std::uint64_t unmarked_ns = 0;   // and after the last mark
  bool unmarked_known = true;
  std::uint32_t unmarked_parts = 0;
  std::uint32_t pacing_points = 0;
  CostCorrection correction;    // factor from estimated to actual time
  std::uint64_t busy_from = 0;  // charged up to here; 0: nothing is in flight
  std::uint64_t until = 0;      // expected end of all work in flight
};

// The lane of the current context, locked until it is released; null without a context.
Lane* take_lane();
void give_back(Lane& lane);
void forget_lanes();  // in the child of a fork

// Whether the device currently has a share or a priority; if so, the run is registered for turns.
// Needs the lane's lock.
bool is_limited(Lane& lane, std::uint64_t now);

}  // namespace assay::gpu
