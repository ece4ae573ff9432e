// run_command(): what `assay run` does, from the keeper's point of view.
#pragma once

#include "base/result.h"
#include "lineage/record/recorder.h"
#include "observe/collect/keeper.h"

namespace assay::lineage {

// Runs the command, recorded, and returns when that is done. Everything there is to say has been
// said on standard error by then.
base::Result<collect::Kept> run_command(const RunRequest& request);

}  // namespace assay::lineage
