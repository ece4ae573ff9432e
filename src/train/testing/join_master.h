// The inverse of split_master(), as kernels compute it.
#pragma once

#include <bit>
#include <cstdint>

#include "train/float_bits.h"

namespace assay::train {

inline float join_master(SplitMaster halves) {
  const auto distance = static_cast<std::int32_t>(static_cast<std::int16_t>(halves.low));
  return std::bit_cast<float>((static_cast<std::uint32_t>(halves.high) << 16U) +
                              static_cast<std::uint32_t>(distance));
}

}  // namespace assay::train
