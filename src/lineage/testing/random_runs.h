// Random histories for property tests: few paths and few contents, so that re-runs, changes in
// place, copies, renames, empty files, deletions and cycles all occur.
#pragma once

#include <rapidcheck.h>

#include <vector>

#include "store/run.h"

namespace assay::lineage::testing {

// The runs do not overlap in time, and all have status kDone.
rc::Gen<std::vector<store::RunRecord>> random_runs();

}  // namespace assay::lineage::testing
