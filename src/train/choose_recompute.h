// What is recomputed, when the job leaves it open: the fastest policy whose memory fits.
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

struct Planned {
  step::Program program;
  step::MemoryPlan plan;
  std::int64_t extra_bytes = 0;
};

struct Room {
  std::int64_t available = 0;  // bytes
  // What a program takes besides its plan.
  std::function<base::Result<std::int64_t>(const step::Program&)> extra;
};
Room room_on(Backend& backend, std::int64_t available);

// The error of a job that does not fit names what would.
base::Result<Planned> plan_step(const spec::JobSpec& job, step::Choices choices, const Room& room);

}  // namespace assay::train
