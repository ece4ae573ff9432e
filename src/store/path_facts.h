// What runs found out about paths, other than file contents (PathFact in run.h). Table `path_fact`.
#pragma once

#include <vector>

#include "base/result.h"
#include "store/database.h"
#include "store/run.h"
#include "store/store.h"

namespace assay::store {

// Sorted by kind and path.
base::Result<std::vector<PathFact>> path_facts(Store& store, RunId run);

// Internal to src/store, inside the caller's transaction. If there already is a fact of this kind
// about this path, it is kept.
base::Result<void> insert_path_fact(Database& database, RunId run, const PathFact& fact);

}  // namespace assay::store
