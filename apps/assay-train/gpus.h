// Which GPU a rank of several trains on.
#pragma once

#include "base/result.h"
#include "control/place.h"
#include "spec/job.h"

namespace assay::cli {

struct GpuOfRank {
  int index = 0;  // among those that the process sees
  int ranks = 1;  // that share it
};

// A GPU for each rank of this machine, or for each few of them (ASSAY_RANKS_PER_GPU). Sets
// NCCL_HOSTID where ranks share one: NCCL refuses to connect a GPU with itself, unless it takes the
// ranks for those of several machines.
base::Result<GpuOfRank> gpu_of(const control::Place& place);

// Whether this machine has GPUs for all ranks of the layout.
base::Result<void> check_gpus(const spec::LayoutSpec& layout);

}  // namespace assay::cli
