// How well steps are predicted that the constants have not seen: each row by constants that were
// fitted without any row of its project, and within an interval made without them.
//
// The shape of the model was found with these rows in view, so that this is honest about its
// constants alone; and what other projects were off by, which makes the interval, was predicted by
// constants that had seen this one. The frozen panel (tests/data/plan) is honest about all of it.
#pragma once

#include <span>
#include <vector>

#include "plan/calibrate/rows.h"
#include "plan/calibrate/scores.h"

namespace assay::plan {

// Like predict_all; rows that are not scored have no time. One fit per project, on so many threads
// (0: one per processor).
std::vector<RowPrediction> cross_validate(std::span<const Row> rows, unsigned threads = 0);

}  // namespace assay::plan
