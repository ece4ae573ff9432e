// Draws: random numbers that depend only on seed and stream (SplitMix64: Steele, Lea and Flood,
// "Fast splittable pseudorandom number generators", 2014): the same on every machine, and trials
// with separate streams can be simulated in any order. For statistics and simulation; training uses
// train/data/mix.h to order tokens and train/philox.h to fill tensors.
#pragma once

#include <cmath>
#include <cstdint>

namespace assay::base {

// Its finaliser: every bit of the result depends on every bit of `x`.
constexpr std::uint64_t mixed_bits(std::uint64_t x) {
  x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27U)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31U);
}

class Draws {
 public:
  explicit Draws(std::uint64_t seed) : Draws(seed, 0) {}
  Draws(std::uint64_t seed, std::uint64_t stream)
      : state_(mixed_bits(mixed_bits(seed) + stream * kStep)) {}

  std::uint64_t next() {
    state_ += kStep;
    return mixed_bits(state_);
  }
  // Below `count`, which must be less than 2^32; uniform up to a bias of one part in 2^32.
  std::uint64_t below(std::uint64_t count) { return ((next() >> 32U) * count) >> 32U; }
  // In (0, 1].
  double uniform() { return (static_cast<double>(next() >> 11U) + 1) * 0x1p-53; }
  double exponential(double mean) { return -mean * std::log(uniform()); }

 private:
  static constexpr std::uint64_t kStep = 0x9E3779B97F4A7C15U;

  std::uint64_t state_;
};

}  // namespace assay::base
