// Free host memory, and whether it is enough for the snapshots of this machine's ranks.
#pragma once

#include <cstdint>

#include "base/result.h"

namespace assay::train {

// Memory available without swapping, limited by the control groups of this process.
std::int64_t available_host_memory();

// Fails if `ranks` snapshots of this size do not fit into the available memory with a reserve for
// other processes. Nothing is allocated: other processes may still take the memory later.
base::Result<void> check_snapshots_fit(std::int64_t bytes, int ranks, std::int64_t available);

}  // namespace assay::train
