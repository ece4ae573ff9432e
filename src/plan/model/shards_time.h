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

// Parameters that a rank trains, before FSDP divides them.
double trained_parameters(const Work& work, const RankShare& rank);

// A layer's parameters, as one FSDP rank has them gathered.
double gathered_of_layer(const Work& work, const RankShare& rank);
// Bytes per parameter and micro-batch.
double bytes_reduced(const Work& work, const RankShare& rank);

// Ranks that hold the same expert, of `ranks` that hold the same dense layer.
double expert_replicas(const Degrees& degrees, double ranks);

double optimizer_seconds(const Work& work, const RankShare& rank, double parameters,
                         const Constants& constants);

}  // namespace assay::plan
