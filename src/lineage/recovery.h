// Recovery: jobs whose collector was killed are finished from the event logs they left. Whoever
// opens a store to ask or to write does this first.
#pragma once

#include "base/result.h"
#include "store/store.h"

namespace assay::lineage {

// Marks every such job interrupted, with everything its log holds. Returns how many there were.
base::Result<int> recover_jobs(store::Store& store);

}  // namespace assay::lineage
