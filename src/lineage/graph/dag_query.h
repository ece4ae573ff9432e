// Queries that build a Dag: of the current stages (connected by path), of all runs, or around one
// run or artifact (connected by content).
#pragma once

#include <cstdint>

#include "base/result.h"
#include "lineage/graph/dag.h"
#include "lineage/graph/live_stages.h"
#include "lineage/graph/resolve.h"
#include "store/store.h"

namespace assay::lineage {

// The project's current stages.
Dag live_dag(const LiveStages& stages);
base::Result<LiveStages> load_live_stages(store::Store& store);

// Every run that was recorded.
base::Result<Dag> whole_dag(store::Store& store);

struct Reach {
  bool up = true;           // producers of inputs, and so on, to files that no run made
  bool down = true;         // readers of outputs, and so on
  std::int64_t depth = -1;  // the greatest distance from the subject in runs; -1: any
};

// What a run or an artifact came from, and what came from it.
base::Result<Dag> dag_around(store::Store& store, const RunOrArtifact& what, const Reach& reach);

}  // namespace assay::lineage
