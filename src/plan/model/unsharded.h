// What FSDP has unsharded while a step is at work: units, not the model.
#pragma once

#include "plan/model/rank_share.h"
#include "plan/model/work.h"

namespace assay::plan {

// Bytes.
double unsharded_units(const Work& work, const RankShare& rank);

}  // namespace assay::plan
