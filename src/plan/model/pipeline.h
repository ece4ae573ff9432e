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
};

double pipeline_seconds(const Pipeline& pipeline);

// Micro-batches whose forward pass the first or the last stage has begun and whose backward pass it
// has not finished: the first waits for all stages after it, the last for none. With chunks, those
// that wait for their next chunk come on top. 1 without a pipeline.
double micros_in_flight(const Work& work, bool last);

}  // namespace assay::plan
