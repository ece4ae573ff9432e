// Rotary positions: how fast each pair of a head's numbers turns.
#pragma once

#include <vector>

#include "spec/model.h"

namespace assay::spec {

// Radians per position of the head_dim / 2 pairs, the fastest first. With a rope_factor above 1 as
// Llama 3.1 scales them: pairs that turn at most rope_low times within rope_context are slowed down
// by the factor, those that turn at least rope_high times are kept, and between the two the share
// of either changes linearly with the number of turns.
std::vector<double> rope_frequencies(const ModelSpec& model);

}  // namespace assay::spec
