// Runs as JSON. A run is what `assay show --json` prints. Programs rely on its keys: run{id,
// command, exit_code, status, tracer, complete, dropped, duration_s}, inputs[{path, blake3, size}],
// outputs[{path, blake3, size, status}], processes (how many), missed[{what, text}].
#pragma once

#include "base/json.h"
#include "lineage/graph/dag.h"
#include "store/run.h"

namespace assay::lineage {

// One row of `assay log`: the run without lists and context.
base::Json run_head_json(const store::RunRecord& run);
// Everything.
base::Json run_json(const store::RunRecord& run);
// Runs and the files between them: runs[{id, stage, command, …, inputs[], outputs[]}],
// files[{path, blake3, size, producer, consumers[]}].
base::Json dag_json(const Dag& dag);

}  // namespace assay::lineage
