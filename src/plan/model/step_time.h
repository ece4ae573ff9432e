// The time of one optimizer step on one rank of the slowest kind, and what it is spent on.
#pragma once

#include "plan/model/constants.h"
#include "plan/model/work.h"

namespace assay::plan {

// Seconds of a step. The parts add up to the total; each is what the step would not have taken
// without it, in the order in which the model adds effects.
struct StepTime {
  double total = 0;
  // What the critical rank computes.
  double products = 0;  // matrix products of the layers, recomputation included
  double attention = 0;
  double passes = 0;   // norms, activations, residuals, casts: bound by memory
  double head = 0;     // output product and loss
  double routing = 0;  // of mixtures: permutation
  // What it waits for.
  double tensor = 0;  // collectives of tensor parallelism and the skew of its ranks
  double context = 0;
  double experts = 0;    // all-to-all
  double shards = 0;     // FSDP's gathers and reductions that are not hidden
  double gradients = 0;  // of replicas, not hidden
  double pipeline = 0;   // bubbles and sends between stages
  double host = 0;       // launches that the device waits for
  double optimizer = 0;
  double other = 0;  // fixed costs and the jitter of many nodes

  double clock = 1;  // of full clock, under the power limit
};

StepTime step_time(const Work& work, const Constants& constants);

// The total alone, for searches and fits: the same arithmetic without the attribution.
double step_seconds(const Work& work, const Constants& constants);

}  // namespace assay::plan
