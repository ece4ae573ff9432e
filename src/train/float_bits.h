// fp32 as two halves of 16 bits: a bf16 that is rounded to nearest, and what it takes to get the
// exact value back.
//
// The low half alone would make the bf16 a truncation. So the pair is read as one signed sum: bits
// = (high << 16) + (signed low). high is the nearest bf16 (ties away from zero in magnitude), low
// is between -32768 and 32767, and every fp32 but NaN has exactly one such pair.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "step/buffer.h"
#include "train/checkpoint/tensor.h"

namespace assay::train {

struct SplitFloat {
  std::uint16_t high = 0;
  std::uint16_t low = 0;  // two's complement
};

inline SplitFloat split(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto low = static_cast<std::uint16_t>(bits);
  // A low half of 0x8000 and above counts as negative, so the high half is one more.
  return {static_cast<std::uint16_t>((bits >> 16U) + (low >> 15U)), low};
}

inline float joined(SplitFloat value) {
  const std::uint32_t high = static_cast<std::uint32_t>(value.high) << 16U;
  const auto low =
      static_cast<std::uint32_t>(static_cast<std::int32_t>(static_cast<std::int16_t>(value.low)));
  return std::bit_cast<float>(high + low);
}

struct SplitFloats {
  std::vector<std::uint16_t> high;
  std::vector<std::uint16_t> low;
};
SplitFloats split_floats(std::span<const float> values);

inline float from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U);
}

// Weights of another type as fp32.
base::Result<std::vector<std::byte>> converted(std::span<const std::byte> from,
                                               checkpoint::Dtype type, step::Dtype to);

}  // namespace assay::train
