// Scaling: the job with its micro-batch and its inner degrees on fewer and more machines. Each rank
// keeps its work, so a step reads as many more tokens (weak scaling).
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "plan/prediction.h"
#include "spec/job.h"

namespace assay::plan {

struct ScalePoint {
  std::int64_t devices = 0;
  spec::LayoutSpec layout;
  Prediction prediction;
  double of_ideal = 0;  // tokens per second and device, of the smallest number that fits
  bool is_job = false;  // the job itself
};

// From the smallest number that the inner degrees allow by doubling to 16 times the job's, in steps
// that fill nodes; a cluster without a network has one node. Shards grow where there are only
// shards (fsdp), replicas (dp) elsewhere.
base::Result<std::vector<ScalePoint>> scaling_of(const spec::JobSpec& job,
                                                 const Assumed& assumed = {},
                                                 const ModelConstants& constants = {});

}  // namespace assay::plan
