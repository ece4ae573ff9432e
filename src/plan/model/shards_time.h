// FSDP's exchange of parameters and gradients (replicas: gradients_time.h), and the optimizer's
// pass over a rank's share.
#pragma once

#include "plan/model/constants.h"
#include "plan/model/rank_share.h"
#include "plan/model/work.h"

namespace assay::plan {

inline constexpr double kWeightBytes = 2;  // of a parameter that is gathered

// Seconds of FSDP's exchange that computation does not hide.
struct ShardsTime {
  double forward = 0;  // per layer and micro-batch
  double backward = 0;
  double ends = 0;  // embedding and head, per micro-batch
};
ShardsTime shards_time(const Work& work, const RankShare& rank, double forward, double backward,
                       const Constants& constants);

// Parameters that a rank trains, before FSDP divides them. Experts that only some ranks hold are
// divided by fewer.
struct TrainedParameters {
  double dense = 0;
  double experts = 0;
};
TrainedParameters trained_parameters(const Work& work, const RankShare& rank);

// A layer's parameters that FSDP's ranks gather: of experts those that other ranks hold as well.
TrainedParameters gathered_of_layer(const Work& work, const RankShare& rank);
// Bytes per parameter and micro-batch.
double bytes_reduced(const Work& work, const RankShare& rank);

double optimizer_seconds(const Work& work, const RankShare& rank,
                         const TrainedParameters& parameters, const Constants& constants);

}  // namespace assay::plan
