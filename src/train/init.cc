#include "train/init.h"

#include "train/normal_draw.h"

namespace assay::train {

// FNV-1a is enough: names are few and short, and Philox mixes the result.
std::uint64_t draw_name(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : name) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  }
  return hash;
}

void initial_values(const step::Parameter& parameter, std::uint64_t seed, std::int64_t first,
                    std::span<float> out) {
  if (parameter.init != step::Init::kNormal) {
    const float value = parameter.init == step::Init::kOnes ? 1.0F : 0.0F;
    for (float& element : out) element = value;
    return;
  }
  const std::uint64_t name = draw_name(parameter.name);
  double four[4] = {};
  std::int64_t block = -1;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::int64_t at = first + static_cast<std::int64_t>(i);
    if (at / 4 != block) {
      block = at / 4;
      draw_four(seed, name, static_cast<std::uint64_t>(block), four);
    }
    out[i] = static_cast<float>(parameter.init_std * four[static_cast<std::size_t>(at % 4)]);
  }
}

}  // namespace assay::train
