// Rotary positions: the frequency at which each pair of elements of a head rotates.
#pragma once

#include <vector>

#include "spec/model.h"

namespace assay::spec {

// Radians per position for the head_dim / 2 pairs, the fastest first. With a rope_factor above 1
// they are scaled as in Llama 3.1: pairs that rotate at most rope_low times within rope_context are
// slowed down by the factor, those that rotate at least rope_high times are unchanged, and in
// between the two are interpolated linearly in the number of rotations.
std::vector<double> rope_frequencies(const ModelSpec& model);

}  // namespace assay::spec
