// How long a pipeline takes for the micro-batches of a step, bubbles included.
#pragma once

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

}  // namespace assay::plan
