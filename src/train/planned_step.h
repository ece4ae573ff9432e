// Plans a step: its program, its memory and, if the job leaves it open, the fastest recomputation
// policy whose memory fits.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "spec/job.h"
#include "step/memory_plan.h"
#include "step/program.h"
#include "train/backend.h"

namespace assay::train {

struct ExecutableStep {
  step::Program program;
  step::MemoryPlan plan;
  std::int64_t extra_bytes = 0;
};

struct MemoryBudget {
  std::int64_t available_bytes = 0;
  // Bytes that a program needs in addition to its memory plan.
  std::function<base::Result<std::int64_t>(const step::Program&)> extra_bytes;
};
MemoryBudget memory_budget(Backend& backend, std::int64_t available);

// If the job does not fit, the error suggests settings that would.
base::Result<ExecutableStep> plan_step(const spec::JobSpec& job, step::Choices choices,
                                       const MemoryBudget& budget);

}  // namespace assay::train
