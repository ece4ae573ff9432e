// Initial weights: each element is a function of the seed, the parameter's name and its index, so
// that any rank can compute any part of any parameter.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "step/program.h"

namespace assay::train {

// Elements [first, first + out.size()) of the parameter.
void initial_values(const step::Parameter& parameter, std::uint64_t seed, std::int64_t first,
                    std::span<float> out);

// The number that stands for the parameter's name in random draws (normal_draw.h).
std::uint64_t draw_name(std::string_view name);

}  // namespace assay::train
