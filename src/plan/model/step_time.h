// The time of one optimizer step on one rank of the slowest kind, and its parts.
#pragma once

#include <span>
#include <string_view>

#include "base/units.h"
#include "plan/model/constants.h"
#include "plan/model/work.h"

namespace assay::plan {

// The parts add up to the total; each is what the step would not have taken without it, in the
// order in which the model adds effects.
struct StepTime {
  base::Seconds total;
  // What the critical rank computes.
  base::Seconds products;  // matrix products of the layers, recomputation included
  base::Seconds attention;
  base::Seconds passes;   // norms, activations, residuals, casts: bound by memory
  base::Seconds head;     // output product and loss
  base::Seconds routing;  // of mixtures: permutation
  // What it waits for.
  base::Seconds tensor;  // collectives of tensor parallelism and the skew of its ranks
  base::Seconds context;
  base::Seconds experts;    // all-to-all
  base::Seconds shards;     // FSDP's gathers and reductions that are not hidden
  base::Seconds gradients;  // of replicas, not hidden
  base::Seconds pipeline;   // bubbles and sends between stages
  base::Seconds host;       // launches that the device waits for
  base::Seconds optimizer;
  base::Seconds other;  // fixed costs and the jitter of many nodes

  double clock = 1;  // of full clock, under the power limit
};

struct StepPart {
  std::string_view key;   // in JSON
  std::string_view name;  // in tables and charts
  base::Seconds StepTime::*time;
};
// In the order of a breakdown.
std::span<const StepPart> step_parts();

StepTime step_time(const Work& work, const Constants& constants);

// The total alone, for searches and fits: the same arithmetic without the attribution.
base::Seconds step_seconds(const Work& work, const Constants& constants);

}  // namespace assay::plan
