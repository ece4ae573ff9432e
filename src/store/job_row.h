// The row of table `job` and its `job_git`: everything of a Job but its lists.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "store/database.h"
#include "store/job.h"

namespace assay::store {

// 16 random hexadecimal digits.
base::Result<std::string> random_uid();

// Inside the caller's transaction. insert_job ignores `id`, `step` and the counts.
base::Result<JobId> insert_job(Database& database, const Job& job);
base::Result<void> update_job(Database& database, const Job& job);

// The columns that job_at() reads, of `job AS j`.
extern const std::string_view kJobColumns;
// The job of the current row, without context and lists.
Job job_at(const Statement& row);
// Adds user, host, git, environment and machine.
base::Result<void> read_context(Database& database, Job& job);

}  // namespace assay::store
