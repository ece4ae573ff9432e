// The lists of one run, read from their tables. For the .cc files of this room.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "store/database.h"
#include "store/run.h"

namespace assay::store {

base::Result<std::vector<Process>> processes_of(Database& database, RunId run);
base::Result<std::vector<Missed>> missed_of(Database& database, RunId run);
base::Result<std::vector<FileRule>> rules_of(Database& database, RunId run);
base::Result<std::vector<Package>> packages_of(Database& database, RunId run);
base::Result<std::vector<std::string>> labels_of_run(Database& database, RunId run);

// A row of (path, blake3, size, status, source, before).
Output output_at(const Statement& row);

}  // namespace assay::store
