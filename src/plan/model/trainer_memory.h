// Memory of a rank of our own trainer: counted from the buffers of its step, not fitted.
#pragma once

#include "plan/model/memory.h"
#include "plan/model/rank_share.h"
#include "plan/model/work.h"

namespace assay::plan {

// CUDA's context, and libraries' workspaces: bytes beside what the step's buffers take.
inline constexpr double kTrainerContext = 1.0 * 1024 * 1024 * 1024;

MemoryNeed trainer_memory(const Work& work, const RankShare& rank);

}  // namespace assay::plan
