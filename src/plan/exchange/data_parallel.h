// The exchange of replicas (all-reduce), of a sharded optimizer (ZeRO 1 and 2) and of sharded
// parameters (ZeRO 3, FSDP), a block at a time, over what tensor, pipeline and expert parallelism
// leave to a rank.
#pragma once

#include "plan/exchange/communication.h"

namespace assay::plan {

Communication data_parallel(const spec::JobSpec& job);

}  // namespace assay::plan
