// Recovery: runs whose collector was killed are finished from their event logs. Every verb that
// opens a store does this first.
#pragma once

#include <sys/types.h>

#include <optional>

#include "base/result.h"
#include "store/store.h"

namespace assay::lineage {

// What the keeper knows about a run whose collector was killed.
struct EndedRun {
  pid_t collector = 0;
  int wait_status = 0;
};

// Marks every such run interrupted, with everything its log contains. Returns their number.
base::Result<int> recover_runs(store::Store& store, const std::optional<EndedRun>& ended = {});

}  // namespace assay::lineage
