// Normally distributed numbers from random words, on the host and on GPUs, and whether both are
// certain to produce the same weight.
//
// Both use the same double-precision formulas, but log, sin and cos come from two libraries that
// differ in the last bits. After rounding to fp32 this matters only for numbers very close to the
// midpoint between two floats: rounds_safely() detects these, one in four million, and the host's
// result is used for them.
#pragma once

#include <cmath>
#include <cstdint>

#include "train/philox.h"

namespace assay::train {

// The largest difference between the libraries' results, in units in the last place of a double.
// log (whose error the square root halves), sin and cos are each off by at most 2 (CUDA's
// documentation; less than 1 in glibc), and six products and roots round by half a unit, so 8 would
// be enough.
inline constexpr std::uint64_t kDrawError = 64;

// Two independent normal numbers from two uniform ones (Box and Muller).
ASSAY_HOST_AND_DEVICE inline void box_muller(std::uint32_t a, std::uint32_t b, double& x,
                                             double& y) {
  constexpr double kStep = 1.0 / 4294967296.0;
  constexpr double kPi = 3.141592653589793238462643383279502884;
  const double radius = ::sqrt(-2.0 * ::log((static_cast<double>(a) + 1.0) * kStep));
  const double angle = 2.0 * kPi * static_cast<double>(b) * kStep;
  x = radius * ::cos(angle);
  y = radius * ::sin(angle);
}

// Four numbers with standard deviation 1: elements 4 * block to 4 * block + 3 of the parameter with
// this name.
ASSAY_HOST_AND_DEVICE inline void draw_four(std::uint64_t seed, std::uint64_t name,
                                            std::uint64_t block, double (&four)[4]) {
  const PhiloxWords bits = philox_words(seed, block, name);
  box_muller(bits.word[0], bits.word[1], four[0], four[1]);
  box_muller(bits.word[2], bits.word[3], four[2], four[3]);
}

// Whether every double within kDrawError of the one with these bits rounds to the same float.
ASSAY_HOST_AND_DEVICE inline bool rounds_safely(std::uint64_t bits) {
  constexpr std::uint64_t kDropped = (std::uint64_t{1} << 29U) - 1;  // bits that a float lacks
  constexpr std::uint64_t kMiddle = std::uint64_t{1} << 28U;
  const std::uint64_t exponent = (bits >> 52U) & 0x7ffU;
  // Zero, and anything outside the range of normal floats; rare enough to leave to the host.
  if (exponent <= 1023 - 126 || exponent >= 1023 + 127) return false;
  const std::uint64_t dropped = bits & kDropped;
  return (dropped > kMiddle ? dropped - kMiddle : kMiddle - dropped) > kDrawError;
}

}  // namespace assay::train
