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

}  // namespace assay::train
