// Conversions between fp32 and the types that weights are stored in.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "step/buffer.h"
#include "train/checkpoint/tensor.h"
#include "train/split_master.h"

namespace assay::train {

// Arrays of the two halves of split_master.h.
struct SplitFloats {
  std::vector<std::uint16_t> high;
  std::vector<std::uint16_t> low;
};
SplitFloats split_floats(std::span<const float> values);

inline float from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U);
}

// Converts stored weights to another type (bf16 to fp32).
base::Result<std::vector<std::byte>> converted(std::span<const std::byte> from,
                                               checkpoint::TensorDtype type, step::Dtype to);

}  // namespace assay::train
