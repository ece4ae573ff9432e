// The output of train_step_bench, and its initial weights.
#pragma once

#include <vector>

#include "base/result.h"
#include "step/memory_plan.h"
#include "train/cuda/cuda_backend.h"

namespace assay::bench {

base::Result<void> fill_weights(train::Backend& backend, const step::Program& program);

// Tokens per second, and the share of the published peak under both usual definitions.
void print_speed(const step::Program& program, std::vector<double> seconds);
// Of the last step's experts; `waited`: seconds of a step in which the host waited to know it.
base::Result<void> print_load(train::Backend& backend, const step::Program& program, double waited);
void print_memory(const step::MemoryPlan& plan, const train::cuda::MemoryUse& use);
// Device time by kind of op; matrix products by part and pass. Of a mixture, sums of what it adds.
void print_profile(const std::vector<train::cuda::OpTime>& times, const step::Program& program);

}  // namespace assay::bench
