// The jobs that something was made by: its producer, the producers of what that one read, and so
// on. For exports and for making it again.
#pragma once

#include <vector>

#include "base/result.h"
#include "lineage/artifact_name.h"
#include "store/job.h"
#include "store/store.h"

namespace assay::lineage {

// The job that left this content, there if possible; a usage error when no job did.
base::Result<store::JobId> producer_of(store::Store& store, const Artifact& artifact);

// `roots` and everything they came from, with lists and context. Producers stand before their
// consumers, and otherwise the roots keep their order. Jobs that fed each other while they ran are
// in the order in which they were found.
base::Result<std::vector<store::Job>> upstream_of(store::Store& store,
                                                  const std::vector<store::JobId>& roots);

// The live jobs recorded with `run --build` before `job`: they prepared what it ran in.
base::Result<std::vector<store::JobId>> build_jobs_before(store::Store& store,
                                                          const store::Job& job);

}  // namespace assay::lineage
