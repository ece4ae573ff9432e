// An fp32 weight in two halves of 16 bits. The high half is the weight as matrix products read it,
// in bf16; the low half is what makes it exact again.
//
// The high half is the fp32 number rounded to the nearest bf16 (a tie moves away from zero): its
// bits plus half a unit, cut. The low half is the fp32 number's own low 16 bits. Read as signed
// they are the distance from the rounded half, so joining is one addition, and every fp32 number
// there is comes back bit for bit, infinities and NaNs included.
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
  const auto away = static_cast<std::int32_t>(static_cast<std::int16_t>(halves.low));
  return std::bit_cast<float>((static_cast<std::uint32_t>(halves.high) << 16U) +
                              static_cast<std::uint32_t>(away));
}

}  // namespace assay::train
