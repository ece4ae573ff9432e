// Steps: what a project consists of. A job that succeeded is the current job of its step. A
// repeated step (step_identity.h) takes the number of its predecessor, whose job stays in the log
// as superseded. Table `step`.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "store/job.h"
#include "store/store.h"

namespace assay::store {

// The current job of step N, with context and lists; a usage error when there is no such step.
base::Result<Job> step_job(Store& store, std::int64_t number);

// The current jobs of all steps in the order of their numbers, without context and lists.
base::Result<std::vector<Job>> live_jobs(Store& store);

// Inside the caller's transaction, when the job's files are written: makes it the current job of
// the step that it repeats, or of a new one, and returns the step's number. `files` is
// files_identity().
base::Result<std::int64_t> take_step(Database& database, const Job& job,
                                     const std::optional<hash::Digest>& files);
// Inside the caller's transaction: the step falls back to its newest other job, or goes away.
base::Result<void> leave_step(Database& database, JobId job);

}  // namespace assay::store
