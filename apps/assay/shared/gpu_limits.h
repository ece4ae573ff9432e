// GPU limit options, shared by `run` and `limit`: their declarations, and their check against this
// machine's GPUs.
#pragma once

#include "base/result.h"
#include "cli/verb.h"
#include "share/limit_plan.h"

namespace assay::cli {

// --gpu-memory, --gpu-compute, --gpu, --gpu-borrow and --priority.
void add_limit_options(share::GpuLimitOptions& limits, std::vector<Option>& options);

// This machine's GPUs, or why they are unknown, and this process's CUDA environment.
share::LimitContext limit_context();

// The limits of a command that is about to be started in this environment.
base::Result<share::LimitPlan> limits_of_run(const share::GpuLimitOptions& options);

}  // namespace assay::cli
