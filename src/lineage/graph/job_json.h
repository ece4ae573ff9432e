// A job as JSON: what `assay show --json` prints. Programs rely on its keys: job{id, command,
// exit_code, status, tracer, complete, dropped, duration_s}, inputs[{path, blake3, size}],
// outputs[{path, blake3, size, status}], processes (how many), missed[{what, text}].
#pragma once

#include "base/json.h"
#include "store/job.h"

namespace assay::lineage {

// One line of `assay log`: the job without lists and context.
base::Json job_head_json(const store::Job& job);
// Everything.
base::Json job_json(const store::Job& job);

}  // namespace assay::lineage
