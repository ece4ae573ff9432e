// After the last block: the final norm, the logits and the loss.
#pragma once

#include <cstdint>
#include <vector>

#include "step/builder.h"

namespace assay::step {

// For training also the gradients, into dx, which is null otherwise.
void build_head(Builder& b, const View& x, const View& targets, const View* dx);
// The units whose weights it uses.
std::vector<std::int32_t> units_of_head(const Builder& b);

}  // namespace assay::step
