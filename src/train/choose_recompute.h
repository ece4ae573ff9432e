// What is recomputed, when the job leaves it open: the fastest policy whose memory fits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "spec/job.h"
#include "step/memory_plan.h"
#include "step/program.h"

namespace assay::train {

struct Planned {
  step::Program program;
  step::MemoryPlan plan;
};

// `available`: bytes that the arena may have; `extra`: what the backend takes besides. The error of
// a job that does not fit names what would.
base::Result<Planned> plan_step(const spec::JobSpec& job, step::Choices choices,
                                std::int64_t available, std::int64_t extra);

}  // namespace assay::train
