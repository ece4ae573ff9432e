// What runs found out about names (PathFact in run.h). Table `path_fact`.
#pragma once

#include <vector>

#include "base/result.h"
#include "store/database.h"
#include "store/run.h"
#include "store/store.h"

namespace assay::store {

// Sorted by kind and path.
base::Result<std::vector<PathFact>> path_facts(Store& store, RunId run);

// Internal to src/store, inside the caller's transaction. A fact about the same path and of the
// same kind that was added before stays.
base::Result<void> insert_path_fact(Database& database, RunId run, const PathFact& fact);

}  // namespace assay::store
