// Conversions between fp32 and the types that weights are stored in.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "train/checkpoint/tensor.h"

namespace assay::train {

// An fp32 weight stored as two 16-bit halves: the high half is the bf16 weight used in matrix
// products, the low half restores the exact fp32 value.
//
// The high half is the fp32 number rounded to the nearest bf16, ties away from zero: its bits plus
// half a unit, truncated. The low half is the low 16 bits of the fp32 number; read as a signed
// number it is the distance from the high half. So joining is one addition (vectors.cuh), and every
// fp32 number, including infinities and NaNs, is restored bit for bit.
struct SplitMaster {
  std::uint16_t high = 0;
  std::uint16_t low = 0;
};

inline SplitMaster split_master(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return {static_cast<std::uint16_t>((bits + 0x8000U) >> 16U), static_cast<std::uint16_t>(bits)};
}

// Arrays of the two halves.
struct SplitFloats {
  std::vector<std::uint16_t> high;
  std::vector<std::uint16_t> low;
};
SplitFloats split_floats(std::span<const float> values);

inline float from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U);
}

// Exact, also for subnormal numbers.
float from_fp16(std::uint16_t bits);

// The types of weights: fp32, bf16, fp16. All of them fit into fp32.
bool are_weights(checkpoint::TensorDtype type);
// Stored weights as fp32.
base::Result<std::vector<float>> to_floats(std::span<const std::byte> from,
                                           checkpoint::TensorDtype type);

}  // namespace assay::train
