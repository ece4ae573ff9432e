// Draws: random numbers that are a function of seed, stream and place (SplitMix64: Steele, Lea and
// Flood, "Fast splittable pseudorandom number generators", 2014), so trials can be played in any
// order and repeat exactly. Internal to src/plan.
#pragma once

#include <cmath>
#include <cstdint>

namespace assay::plan {

class Draws {
 public:
  Draws(std::uint64_t seed, std::uint64_t stream) : state_(mixed(mixed(seed) + stream * kStep)) {}

  // In (0, 1].
  double uniform() {
    state_ += kStep;
    return (static_cast<double>(mixed(state_) >> 11U) + 1) * 0x1p-53;
  }
  double exponential(double mean) { return -mean * std::log(uniform()); }

 private:
  static constexpr std::uint64_t kStep = 0x9E3779B97F4A7C15U;

  static constexpr std::uint64_t mixed(std::uint64_t x) {
    x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9U;
    x = (x ^ (x >> 27U)) * 0x94D049BB133111EBU;
    return x ^ (x >> 31U);
  }

  std::uint64_t state_;
};

}  // namespace assay::plan
