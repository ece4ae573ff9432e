#include "train/init.h"

#include <array>
#include <cmath>
#include <numbers>

#include "train/philox.h"

namespace assay::train {
namespace {

// FNV-1a is enough: names are few and short, and Philox mixes the result.
std::uint64_t hash_of(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : name) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  }
  return hash;
}

// Two independent normal numbers from two uniform ones.
void box_muller(std::uint32_t a, std::uint32_t b, double& x, double& y) {
  constexpr double kStep = 1.0 / 4294967296.0;
  const double radius = std::sqrt(-2.0 * std::log((static_cast<double>(a) + 1.0) * kStep));
  const double angle = 2.0 * std::numbers::pi * static_cast<double>(b) * kStep;
  x = radius * std::cos(angle);
  y = radius * std::sin(angle);
}

}  // namespace

void initial_values(const step::Parameter& parameter, std::uint64_t seed, std::int64_t first,
                    std::span<float> out) {
  if (parameter.init != step::Init::kNormal) {
    const float value = parameter.init == step::Init::kOnes ? 1.0F : 0.0F;
    for (float& element : out) element = value;
    return;
  }
  const std::uint64_t name = hash_of(parameter.name);
  std::array<double, 4> four{};
  std::int64_t block = -1;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::int64_t at = first + static_cast<std::int64_t>(i);
    if (at / 4 != block) {
      block = at / 4;
      const auto bits = philox(seed, {static_cast<std::uint64_t>(block), name});
      box_muller(bits[0], bits[1], four[0], four[1]);
      box_muller(bits[2], bits[3], four[2], four[3]);
    }
    out[i] = static_cast<float>(parameter.init_std * four[static_cast<std::size_t>(at % 4)]);
  }
}

}  // namespace assay::train
