// The sums over a job's ranks: processor time, bytes, and GPU work.
#pragma once

#include "lineage/record/part.h"

namespace assay::lineage {

// Adds what a part has counted to the whole. False, and the whole is as before, if a sum would be
// too large for its type.
bool add_counters(const Part& part, Part& whole);

}  // namespace assay::lineage
