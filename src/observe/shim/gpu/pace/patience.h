// How long a launch waits for what should come.
#pragma once

#include <cstddef>
#include <cstdint>

#include "observe/shim/gpu/pace/lanes.h"

namespace assay::gpu {

inline constexpr std::uint64_t kLongestSpinNs = 300'000;
// Who waits for something near polls, but not for long: it may come later than it was thought.
class Polling {
 public:
  bool may_go_on(bool near, std::uint64_t now) {
    if (!near) since_ = 0;
    if (near && since_ == 0) since_ = now;
    return near && now < since_ + kLongestSpinNs;
  }

 private:
  std::uint64_t since_ = 0;
};

// What is in flight may itself wait for something that this thread will do next. So nobody waits
// longer than it can reasonably take while none of it is done: the launch is made then, turn or
// not.
inline constexpr std::uint64_t kStuckNs = 200'000'000;
class Patience {
 public:
  bool is_over(const Lane& lane, std::uint64_t now) {
    if (since_ == 0 || lane.count == 0 || lane.first != first_) {
      first_ = lane.first;
      since_ = now;
    }
    return now > since_ + kStuckNs + 2 * lane.scale.real(lane.marked_ns);
  }

 private:
  std::size_t first_ = 0;
  std::uint64_t since_ = 0;
};

}  // namespace assay::gpu
