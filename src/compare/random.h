// Draws: random numbers that are a function of seed and stream (SplitMix64: Steele, Lea and Flood,
// "Fast splittable pseudorandom number generators", 2014), the same on every machine.
#pragma once

#include <cstdint>

namespace assay::compare {

class Draws {
 public:
  explicit Draws(std::uint64_t seed, std::uint64_t stream = 0)
      : state_(mixed(mixed(seed) + stream * kStep)) {}

  std::uint64_t next() {
    state_ += kStep;
    return mixed(state_);
  }
  // Below `count`, each equally likely but for one part in 2^32; `count` is less than 2^32.
  std::uint64_t below(std::uint64_t count) { return ((next() >> 32U) * count) >> 32U; }

 private:
  static constexpr std::uint64_t kStep = 0x9E3779B97F4A7C15U;

  static constexpr std::uint64_t mixed(std::uint64_t x) {
    x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9U;
    x = (x ^ (x >> 27U)) * 0x94D049BB133111EBU;
    return x ^ (x >> 31U);
  }

  std::uint64_t state_;
};

}  // namespace assay::compare
