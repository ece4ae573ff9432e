// What `run` and `limit` share: the options that say what a run may have of GPUs, and what these
// come to on this machine.
#pragma once

#include "base/result.h"
#include "cli/verb.h"
#include "share/plan.h"

namespace assay::cli {

// --gpu-memory, --gpu-compute, --gpu, --gpu-borrow and --priority.
void add_limit_options(share::LimitWords& words, std::vector<Option>& options);

// This machine's GPUs, or why they cannot be asked.
share::Surroundings surroundings_here();

// For a command that is about to run in this environment; nothing is started if it is an error.
base::Result<share::LimitPlan> limits_of_run(const share::LimitWords& words);

}  // namespace assay::cli
