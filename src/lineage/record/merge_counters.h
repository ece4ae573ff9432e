// The sums over a job's ranks: processor time, bytes, and GPU work.
#pragma once

#include "lineage/record/part.h"

namespace assay::lineage {

// Adds the counters of a part to the whole. False, with the whole unchanged, if a sum would
// overflow.
bool add_counters(const Part& part, Part& whole);

}  // namespace assay::lineage
