// An fp32 weight stored as two 16-bit halves: the high half is the bf16 weight used in matrix
// products, the low half restores the exact fp32 value.
//
// The high half is the fp32 number rounded to the nearest bf16, ties away from zero: its bits plus
// half a unit, truncated. The low half is the low 16 bits of the fp32 number; read as a signed
// number it is the distance from the high half. So joining is one addition, and every fp32 number,
// including infinities and NaNs, is restored bit for bit.
#pragma once

#include <bit>
#include <cstdint>

namespace assay::train {

struct SplitMaster {
  std::uint16_t high = 0;
  std::uint16_t low = 0;
};

inline SplitMaster split_master(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return {static_cast<std::uint16_t>((bits + 0x8000U) >> 16U), static_cast<std::uint16_t>(bits)};
}

inline float join_master(SplitMaster halves) {
  const auto distance = static_cast<std::int32_t>(static_cast<std::int16_t>(halves.low));
  return std::bit_cast<float>((static_cast<std::uint32_t>(halves.high) << 16U) +
                              static_cast<std::uint32_t>(distance));
}

}  // namespace assay::train
