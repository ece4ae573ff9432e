// Which runs are repeated to make an artifact again: its producer (for a folder, the producers of
// all its files), the runs that made the producer's inputs (graph/upstream.h), and the builds
// before it. plan.h turns them into stages.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "hash/digest.h"
#include "lineage/graph/dag.h"
#include "lineage/graph/resolve.h"
#include "lineage/reproduce/plan.h"
#include "store/run.h"
#include "store/store.h"

namespace assay::lineage {

struct ChosenRuns {
  std::vector<store::RunRecord> runs;          // in order, with lists and context
  std::vector<std::string> folder_files = {};  // for a folder: the files that runs left there
  // All paths at which the contents of inputs were seen, newest first, in case an input is no
  // longer at its own path.
  std::map<hash::Digest, std::vector<std::string>> places;
  // For inputs that no run left at the path where they were read: the run that left the same
  // content at another path before.
  std::map<std::pair<store::RunId, std::string>, SameContent> same_contents;
};

// A usage error when no run made the artifact.
base::Result<ChosenRuns> choose_runs(store::Store& store, const Artifact& artifact);

// The plan for reproducing the artifact on this machine. `environment` is that of this process.
base::Result<ReproductionPlan> plan_reproduction(store::Store& store, const Artifact& artifact,
                                                 std::map<std::string, std::string> environment);

}  // namespace assay::lineage
