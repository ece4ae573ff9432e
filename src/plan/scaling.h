// Scaling: a planned job on fewer and on more devices.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "plan/plan.h"
#include "plan/prediction.h"
#include "spec/job.h"

namespace assay::plan {

// The job with its micro-batch and its inner degrees on a number of devices.
struct ScalePoint {
  std::int64_t devices = 0;
  spec::LayoutSpec layout;
  Prediction prediction;
  // Tokens per second and device, of the smallest number that fits with the job's recomputation. 0
  // where that says nothing about scaling: it does not fit, or recomputes more.
  double of_ideal = 0;
  bool is_job = false;  // the job itself
  // It recomputes what the job does. Else it fits by recomputing more: `prediction` says what.
  bool own_recompute = true;
};

// The job of the plan on fewer and more devices. Each rank keeps its work, so a step reads as many
// more tokens (weak scaling). From the smallest number that the inner degrees allow by doubling to
// 16 times the job's, in steps that fill nodes; a cluster without a network has one node. Shards
// grow where there are only shards (fsdp), replicas (dp) elsewhere. All numbers recompute as the
// plan does; a job that leaves that open recomputes more where else it would not fit. What fits is
// decided as for the plan: by the programs of our trainer where these are counted.
base::Result<std::vector<ScalePoint>> scaling_of(const spec::JobSpec& job, const Plan& plan,
                                                 const PlanInputs& inputs = {});

}  // namespace assay::plan
