// One run on a market of spot machines, simulated from event to event. Internal to src/plan.
#pragma once

#include "base/random_draws.h"
#include "plan/failures/spot.h"

namespace assay::plan {

struct SimulatedRun {
  double seconds = 0;
  double spot_seconds = 0;  // paid for
  double on_demand_seconds = 0;
  double preemptions = 0;
};

// For a run that passed the checks of spot_outcome().
SimulatedRun simulate(const SpotRun& run, SpotPolicy policy, base::Draws draws);

}  // namespace assay::plan
