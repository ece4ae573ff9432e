// The runs that something was made by: its producer, the producers of what that one read, and so
// on. For exports and for making it again.
#pragma once

#include <vector>

#include "base/result.h"
#include "lineage/graph/artifact_name.h"
#include "store/run.h"
#include "store/store.h"

namespace assay::lineage {

// The newest run that left this content at this path; a usage error when no run did.
base::Result<store::RunId> producer_of(store::Store& store, const Artifact& artifact);

// `roots` and everything they came from, with lists and context: for each root what it came from
// and no root before it did, in the order in which it ran, and producers before their consumers.
// What a log held before (store/needs.h) counts only where it is the path of `artifact`.
base::Result<std::vector<store::RunRecord>> upstream_of(store::Store& store,
                                                        const std::vector<store::RunId>& roots,
                                                        const std::string& artifact = {});

// The live runs recorded with `run --build` before `run`: they prepared what it ran in.
base::Result<std::vector<store::RunId>> build_runs_before(store::Store& store,
                                                          const store::RunRecord& run);

}  // namespace assay::lineage
