// The rows of a run in tables `run` and `run_git`: everything in a RunRecord but its lists.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "store/database.h"
#include "store/run.h"

namespace assay::store {

// 16 random hexadecimal digits.
base::Result<std::string> random_uid();

// The run with this uid; fails if there is none.
base::Result<RunId> run_with_uid(Database& database, const std::string& uid);

// Inside the caller's transaction. insert_run ignores `id`, `stage` and the counts.
base::Result<RunId> insert_run(Database& database, const RunRecord& run);
base::Result<void> update_run(Database& database, const RunRecord& run);

// The columns that run_at() reads, of `run AS j`.
extern const std::string_view kRunColumns;
// The run of the current row, without context and lists.
RunRecord run_at(const Statement& row);
// Adds user, host, git, environment and machine.
base::Result<void> read_context(Database& database, RunRecord& run);

}  // namespace assay::store
