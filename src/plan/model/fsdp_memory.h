// Peak memory of PyTorch's FSDP2 under a decoder of plain modules: the largest of the moments of a
// step, each with what is alive then. tests/torch/fsdp_memory.py counts the same in PyTorch itself.
#pragma once

#include "plan/model/memory.h"
#include "plan/model/rank_share.h"
#include "plan/model/work.h"

namespace assay::plan {

// Bytes of training state per parameter of a rank, before FSDP cuts it.
struct StateBytes {
  double weight = 0;
  double gradient = 0;
  double optimizer = 0;
};

// Whether fsdp_memory knows what is alive: of dense models without a pipeline, gathered by blocks.
bool has_fsdp_moments(const Work& work);

// `base`: bytes of context and libraries.
MemoryNeed fsdp_memory(const Work& work, const RankShare& rank, const StateBytes& state,
                       double base);

}  // namespace assay::plan
