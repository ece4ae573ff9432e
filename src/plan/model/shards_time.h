// What ranks exchange about parameters: FSDP's gathers and reductions, the gradients of replicas;
// and the optimizer's pass over what a rank holds.
#pragma once

#include "plan/model/constants.h"
#include "plan/model/rank_share.h"
#include "plan/model/work.h"

namespace assay::plan {

// Of FSDP, that computation does not hide.
struct ShardsTime {
  double forward = 0;  // per layer and micro-batch
  double backward = 0;
  double ends = 0;  // embedding and head, per micro-batch
};
ShardsTime shards_time(const Work& work, const RankShare& rank, double forward, double backward,
                       const Constants& constants);

// That a rank trains, before FSDP cuts them.
double trained_parameters(const Work& work, const RankShare& rank);

// Of replicas, what `backward` seconds of the last micro-batch do not hide.
double gradients_seconds(const Work& work, const RankShare& rank, double parameters,
                         double backward, const Constants& constants);

double optimizer_seconds(const Work& work, const RankShare& rank, double parameters,
                         const Constants& constants);

}  // namespace assay::plan
