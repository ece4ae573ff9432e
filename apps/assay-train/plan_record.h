// What is predicted about a run when training starts, as it is stored.
#pragma once

#include <string>

#include "assay-train/device.h"
#include "spec/job.h"
#include "store/plans.h"
#include "train/choose_recompute.h"

namespace assay::cli {

// For the recomputation that `planned` has chosen. Memory and exchange are those that `assay plan`
// counts for the job, of all its ranks; what libraries take is this device's own.
store::PlanRecord plan_record(const std::string& name, const spec::JobSpec& job,
                              const train::Planned& planned, const Device& device);

}  // namespace assay::cli
