// How the parameters of a group are spread over ranks: each rank has an equal range of it.
#pragma once

#include <vector>

#include "step/program.h"

namespace assay::step {

// Moves parameters and pads groups, where that is needed; one rank needs nothing. Afterwards no
// matrix of Muon's lies in two ranks' ranges, for its update is of the whole matrix.
void spread_over_ranks(std::int64_t ranks, std::vector<Parameter>& parameters,
                       std::int64_t (&groups)[kGroups]);

}  // namespace assay::step
