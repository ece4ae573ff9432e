// The runs that made an artifact: its producer, the producers of that run's inputs, and so on. For
// exports and for reproducing it.
#pragma once

#include <vector>

#include "base/result.h"
#include "lineage/graph/resolve.h"
#include "store/run.h"
#include "store/store.h"

namespace assay::lineage {

// The newest run that left this content at this path, or for a folder, a file in it; a usage error
// when no run did.
base::Result<store::RunId> producer_of(store::Store& store, const Artifact& artifact);
// The same for a file; for a folder, every run that left a file in it, oldest first.
base::Result<std::vector<store::RunId>> producers_of(store::Store& store, const Artifact& artifact);

// `roots` and all their producers, fully loaded, in the order in which they ran, with producers
// before consumers. They are preceded by `builds` and their producers, without duplicates. The
// earlier content of a log (store/run_dependencies.h) counts only if the log is `artifact`.
base::Result<std::vector<store::RunRecord>> upstream_of(
    store::Store& store, const std::vector<store::RunId>& roots, const std::string& artifact = {},
    const std::vector<store::RunId>& builds = {});

// The live runs recorded with `run --build` before `run`: they prepared its environment.
base::Result<std::vector<store::RunId>> build_runs_before(store::Store& store,
                                                          const store::RunRecord& run);

}  // namespace assay::lineage
