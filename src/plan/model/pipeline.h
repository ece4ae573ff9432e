// Pipelines: how long the micro-batches of a step take, bubbles included, and how many of them a
// stage has in flight.
#pragma once

#include "plan/model/work.h"

namespace assay::plan {

// Seconds of one micro-batch, forward and backward.
struct Pipeline {
  double stages = 1;
  double chunks = 1;  // of a stage; more than one: interleaved
  double micros = 1;
  double slowest = 0;  // in the stage that takes longest
  double whole = 0;    // in all stages together
  // Zero bubble: seconds of a stage's weight gradients, which it computes later. 0: computed with
  // the rest of the backward pass.
  double weights = 0;
  bool two_rounds = false;  // zero bubble that holds twice as many micro-batches
};

double pipeline_seconds(const Pipeline& pipeline);

// Micro-batches that the first (or the last) stage has begun forward and not finished backward. The
// first stage waits for all stages after it, the last for none. Interleaving adds those that wait
// for their next chunk. With zero bubble weight gradients wait too, so that the last stage has as
// many in flight as the first. 1 without a pipeline.
double micros_in_flight(const Work& work, bool last);

}  // namespace assay::plan
