// Memory of a rank of our own trainer: counted from the buffers of its step, not fitted.
#pragma once

#include "plan/model/memory.h"
#include "plan/model/rank_share.h"
#include "plan/model/work.h"

namespace assay::plan {

MemoryNeed trainer_memory(const Work& work, const RankShare& rank);

}  // namespace assay::plan
