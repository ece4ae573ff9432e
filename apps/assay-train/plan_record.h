// The prediction for a run, made when training starts, in the form in which it is stored.
#pragma once

#include <string>

#include "assay-train/device.h"
#include "spec/job.h"
#include "store/plans.h"
#include "train/planned_step.h"

namespace assay::cli {

// Uses the recomputation policy chosen in `planned`. Memory and communication are those that `assay
// plan` computes for all ranks of the job; the memory of libraries is that of this device.
store::PlanRecord plan_record(const std::string& name, const spec::JobSpec& job,
                              const train::PlannedStep& planned, const TrainingDevice& device);

}  // namespace assay::cli
