// A run's work as segments, each an interval of work and a checkpoint, and how long one takes when
// failures repeat it. Internal to src/plan.
#pragma once

#include "plan/failures/failures.h"

namespace assay::plan {

struct Segments {
  double count = 0;        // the last one included
  double segment = 0;      // seconds of each but the last, checkpoint included
  double last = 0;         // seconds of the last
  double undisturbed = 0;  // seconds of all
};
Segments segments_of(const Resilience& r, base::Seconds work);

// Mean seconds until a segment is done: from a checkpoint on, and from the start of an attempt on.
double mean_segment(const Resilience& r, double segment);
double mean_retried_segment(const Resilience& r, double segment);

// Variance of the first.
double segment_variance(const Resilience& r, double segment);

}  // namespace assay::plan
