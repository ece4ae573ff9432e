// The pseudo-random function of this module: stateless and the same on every machine. Shuffles and
// synthetic tokens depend on it, so changing it changes both. Tensors are filled by train/philox.h;
// statistics and simulation draw from base/random_draws.h.
#pragma once

#include <cstdint>

namespace assay::data {

// Every output bit depends on every input bit. Xor-shifts and odd multipliers are bijections, so no
// two inputs collide.
constexpr std::uint64_t mix(std::uint64_t value) {
  value ^= value >> 32;
  value *= 0xd6e8feb86659fd93U;
  value ^= value >> 29;
  value *= 0x9fb21c651e98df25U;
  value ^= value >> 32;
  return value;
}

// Steps by the golden ratio, so that neighbouring inputs start far apart.
constexpr std::uint64_t mix(std::uint64_t key, std::uint64_t value) {
  return mix(mix(key + 0x9e3779b97f4a7c15U) ^ (value * 0x9e3779b97f4a7c15U));
}

// Maps `random` to a number below `limit` by multiplication: no division, negligible bias.
constexpr std::uint64_t below(std::uint64_t limit, std::uint64_t random) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((static_cast<Wide>(random) * limit) >> 64);
}

}  // namespace assay::data
