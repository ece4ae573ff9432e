// A recorded stage as something to run again, for `assay run @N`.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "lineage/record/recorder.h"

namespace assay::lineage {

// The stage with its words, directory, redirects, name, mark as a build stage, tracer (if one was
// named) and filters. `number` is what the user wrote after "@"; `sets` are "key=value". An error
// if there is no such stage in the project of the working directory, if a key is no argument of it,
// or if its command held a secret, which was not kept.
base::Result<RunRequest> stage_request(const std::string& number,
                                       const std::vector<std::string>& sets);

// Brings this process to where the stage ran and gives it the stage's files.
base::Result<void> enter_stage(const RunRequest& request);

}  // namespace assay::lineage
