// A run's work in turns of an interval and a checkpoint, and how long one turn takes when failures
// repeat it. Internal to src/plan.
#pragma once

#include "plan/failures/failures.h"

namespace assay::plan {

struct Turns {
  double count = 0;        // the last one included
  double turn = 0;         // seconds of each but the last, checkpoint included
  double last = 0;         // seconds of the last
  double undisturbed = 0;  // seconds of all
};
Turns turns_of(const Resilience& r, base::Seconds work);

// Mean seconds until a turn is done: from a checkpoint on, and from the begin of an attempt on.
double mean_turn(const Resilience& r, double turn);
double mean_retried_turn(const Resilience& r, double turn);

// Variance of the first.
double turn_variance(const Resilience& r, double turn);

}  // namespace assay::plan
