// Stages: the nodes of the project's pipeline. A run that succeeded becomes the current run of its
// stage. A run that repeats a stage (stage_identity.h) takes over its number; the previous run
// stays in the log, marked superseded. Table `stage`.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/result.h"
#include "store/run.h"
#include "store/store.h"

namespace assay::store {

// The current run of stage N, with context and lists; a usage error when there is no such stage.
base::Result<RunRecord> stage_run(Store& store, std::int64_t number);

// The current runs of all stages in the order of their numbers, without context and lists.
base::Result<std::vector<RunRecord>> live_runs(Store& store);

// By the stage's number: the newest run after its current one that failed or was interrupted, if it
// had the stage's name or command. It belongs to no stage, because it did not succeed.
base::Result<std::map<std::int64_t, RunRecord>> failed_attempts(Store& store);

// Up to `most` earlier runs of this run's stage, newest first.
base::Result<std::vector<RunId>> earlier_runs(Store& store, const RunRecord& run, std::size_t most);

// Inside the caller's transaction, after the run's files were written: makes it the current run of
// the stage that it repeats, or of a new stage, and returns the stage's number. `files` is
// files_identity().
base::Result<std::int64_t> take_stage(Database& database, const RunRecord& run,
                                      const std::optional<hash::Digest>& files);
// Inside the caller's transaction: the stage's newest other run becomes current; a stage without
// another run is removed.
base::Result<void> leave_stage(Database& database, RunId run);

}  // namespace assay::store
