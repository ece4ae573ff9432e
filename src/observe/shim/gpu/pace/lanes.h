// Lanes: one per context, which is where events belong. What was launched in it and has not run
// yet, by events and estimates.
//
// Events are only touched while their context is current, so that it is certain to exist, and are
// never destroyed: they go with it. A context is known by its number, which no other ever gets.
#pragma once

#include <cstddef>
#include <cstdint>

#include "observe/shim/gpu/gpu.h"
#include "observe/shim/gpu/pace/scale.h"
#include "observe/shim/gpu/spin_lock.h"
#include "observe/wire/gpu_turns.h"

namespace assay::gpu {

inline constexpr std::size_t kMarks = 24;

struct Pair {
  void* begin = nullptr;
  void* end = nullptr;
  bool taken = false;
};
// An event behind some work; timed: and one in front of the launch at `place`.
struct Mark {
  int pair = -1;
  std::uint64_t cost_ns = 0;
  std::uint32_t place = 0;
  bool timed = false;
  bool follows = false;  // the mark before had not been passed when this was put
  bool known = false;    // no launch of an unknown cost is before it
  bool is_one = false;   // only the launch that is timed is
};

struct Lane {
  std::atomic<std::uint64_t> context{0};  // its number; 0: free
  std::atomic<std::uint32_t> users{0};
  std::uint64_t used_ns = 0;

  SpinLock lock;                 // for all that follows
  std::uint64_t generation = 0;  // of the limits; 0: not looked yet
  bool limited = false;
  bool has_events = true;
  int failures = 0;
  std::uint32_t line = wire::kGpuDevices;
  wire::TurnDevice* device = nullptr;
  std::size_t row = 0;
  wire::TurnProcess* place = nullptr;

  Pair pairs[kMarks];
  Mark marks[kMarks];  // a ring
  std::size_t first = 0;
  std::size_t count = 0;
  int passed = -1;                // the pair whose end was passed last
  std::uint64_t marked_ns = 0;    // estimated work before the marks
  std::uint64_t unmarked_ns = 0;  // and behind the last of them
  bool unmarked_known = true;
  std::uint32_t unmarked_parts = 0;
  std::uint32_t checkpoints = 0;
  Scale scale;                  // what is estimated, times this, is what it takes
  std::uint64_t busy_from = 0;  // charged until here; 0: nothing is in flight
  std::uint64_t until = 0;      // when everything will have run, by estimates and scale
};

// The lane of the current context, until it is given back; null if there is no context.
Lane* take_lane();
void give_back(Lane& lane);
void forget_lanes();  // in the child of a fork

// With the lane locked: whether the device has a share or a priority, as the limits say now; the
// run is in its turns then.
bool is_limited(Lane& lane, std::uint64_t now);

}  // namespace assay::gpu
