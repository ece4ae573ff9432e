// The parameters of a model as the trainer keeps them: the weights that multiply the same
// activations are one matrix (q, k, v; gate, up), and those that the optimizer treats alike lie in
// one buffer.
#pragma once

#include <vector>

#include "spec/job.h"
#include "step/program.h"

namespace assay::step {

// Tensors begin at multiples of this many elements: what vector loads and matrix libraries like.
inline constexpr std::int64_t kTensorAlignment = 128;

// Offsets within each group are set; groups[i] is how many elements group i has, padding included.
std::vector<Parameter> list_parameters(const spec::ModelSpec& model, spec::Optimizer optimizer,
                                       std::int64_t (&groups)[kGroups]);

// Each rank has an equal range of every group. Moves parameters and pads groups, where that is
// needed; one rank needs nothing. Afterwards no matrix of Muon's lies in two ranks' ranges, for its
// update is of the whole matrix.
void spread_over_ranks(std::int64_t ranks, std::vector<Parameter>& parameters,
                       std::int64_t (&groups)[kGroups]);

}  // namespace assay::step
