// Cross-validation by project: each row is predicted by constants that were fitted without any row
// of its project, with an interval that was made without them.
//
// This is an unbiased test of the constants only. The structure of the model was chosen with these
// rows in view, and the errors of the other projects, from which the interval is made, come from
// constants that were fitted to this one. The frozen panel (tests/data/plan) has
// neither flaw.
#pragma once

#include <span>
#include <vector>

#include "plan/calibrate/rows.h"
#include "plan/calibrate/scores.h"

namespace assay::plan {

// Like predict_all; rows that are not scored have no time. One fit per project, on `threads`
// threads (0: one per processor).
std::vector<RowPrediction> cross_validate(std::span<const Row> rows, unsigned threads = 0);

}  // namespace assay::plan
