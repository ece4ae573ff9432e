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
  // Zero bubble: of a stage's, those of the gradients of weights, which it makes later. 0: with the
  // others.
  double weights = 0;
};

double pipeline_seconds(const Pipeline& pipeline);

// Micro-batches whose forward pass the first or the last stage has begun and whose backward pass it
// has not finished: the first waits for all stages after it, the last for none. With chunks, those
// that wait for their next chunk come on top; with zero bubble, those whose gradients of weights
// wait: the last stage has as many in flight as the first. 1 without a pipeline.
double micros_in_flight(const Work& work, bool last);

}  // namespace assay::plan
