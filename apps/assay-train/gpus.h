// Assigns GPUs to ranks.
#pragma once

#include "base/result.h"
#include "control/rank_assignment.h"
#include "spec/job.h"

namespace assay::cli {

struct GpuOfRank {
  int index = 0;  // among those visible to the process
  int ranks = 1;  // number of ranks that share it
};

// One GPU for each rank of this machine, or for each ASSAY_RANKS_PER_GPU of them. Sets NCCL_HOSTID
// if ranks share a GPU: NCCL refuses to connect a GPU with itself unless it believes that the ranks
// are on different machines.
base::Result<GpuOfRank> gpu_of(const control::RankAssignment& assignment);

// Whether this machine has GPUs for all ranks of the layout.
base::Result<void> check_gpus(const spec::LayoutSpec& layout);

}  // namespace assay::cli
