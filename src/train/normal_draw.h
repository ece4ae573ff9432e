// Normal numbers from random words, on the host and on GPUs, and when both give the same weight.
//
// The arithmetic is the same double by double, but log, sin and cos come from two libraries, which
// differ in the last bits. After rounding to fp32 that matters only where a number lies next to the
// middle between two floats: rounds_safely() finds these, one in four million, and the host's
// result is used for them.
#pragma once

#include <cmath>
#include <cstdint>

#include "train/philox.h"

namespace assay::train {

// How far two libraries' results may be apart, in units of the last place of a double. Each of log
// (whose error the square root halves), sin and cos is off by 2 at most (CUDA's documentation;
// glibc by less than 1), and six products and roots round by a half, so 8 would do.
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

// Four numbers of deviation 1: elements 4 * block to 4 * block + 3 of the parameter of this name.
ASSAY_HOST_AND_DEVICE inline void draw_four(std::uint64_t seed, std::uint64_t name,
                                            std::uint64_t block, double (&four)[4]) {
  const PhiloxWords bits = philox_words(seed, block, name);
  box_muller(bits.word[0], bits.word[1], four[0], four[1]);
  box_muller(bits.word[2], bits.word[3], four[2], four[3]);
}

// `bits` of a double: whether every double within kDrawError of it rounds to the same float.
ASSAY_HOST_AND_DEVICE inline bool rounds_safely(std::uint64_t bits) {
  constexpr std::uint64_t kDropped = (std::uint64_t{1} << 29U) - 1;  // bits that a float lacks
  constexpr std::uint64_t kMiddle = std::uint64_t{1} << 28U;
  const std::uint64_t exponent = (bits >> 52U) & 0x7ffU;
  // Zero, and what is not a normal float: too rare to think about.
  if (exponent <= 1023 - 126 || exponent >= 1023 + 127) return false;
  const std::uint64_t dropped = bits & kDropped;
  return (dropped > kMiddle ? dropped - kMiddle : kMiddle - dropped) > kDrawError;
}

}  // namespace assay::train
