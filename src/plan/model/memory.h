// What a rank's memory holds at its fullest moment, by the model; the largest rank of a pipeline.
#pragma once

#include "plan/model/constants.h"
#include "plan/model/work.h"

namespace assay::plan {

// Bytes.
struct MemoryNeed {
  double parameters = 0;
  double gradients = 0;
  double optimizer = 0;
  double activations = 0;  // kept for the backward pass, logits included
  double gathered = 0;     // what FSDP holds unsharded, communication's buffers
  double workspace = 0;    // of the layer at work, context, libraries, fragmentation
  double stage = 0;        // of the pipeline, whose ranks are the largest

  [[nodiscard]] double total() const {
    return parameters + gradients + optimizer + activations + gathered + workspace;
  }
};

MemoryNeed memory_need(const Work& work, const MemoryConstants& constants);

}  // namespace assay::plan
