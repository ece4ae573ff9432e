// The time of a layer, and of what is before and after the layers, in our trainer: each product,
// pass over memory and exchange of its step (trainer_step.h) at the rates that other software has
// as well (op_time.h, exchange_time.h), and with three constants of its own, fitted to its own
// runs.
#pragma once

#include "plan/model/constants.h"
#include "plan/model/layer_time.h"
#include "plan/model/rank_share.h"
#include "plan/model/trainer_step.h"

namespace assay::plan {

// Rows of mixtures that lie apart from each other, of the time of as many side by side: measured
// 22.0 ms of 17.0 (8 experts) and 32.7 of 27.1 (64) in a step (bench/results/moe.md).
inline constexpr double kScatteredRows = 1.25;

struct TrainerTimes {
  // Of the mean layer: dense ones and mixtures as the model has them, of which the last is not
  // recomputed.
  LayerTimes layer;
  LayerTime ends;  // embedding, head and loss of one micro-batch, forward and backward
};

TrainerTimes trainer_times(const Work& work, const TrainerStep& step, const RankShare& rank,
                           const Constants& constants);

}  // namespace assay::plan
