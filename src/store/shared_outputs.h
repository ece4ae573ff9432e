// Files that several runs wrote while they overlapped: each of them recorded what was there when it
// ended, which another one may have written.
#pragma once

#include <vector>

#include "base/result.h"
#include "store/database.h"
#include "store/run.h"
#include "store/store.h"

namespace assay::store {

// The other runs that are running now, not those whose collector was killed on this machine: no
// verb has recovered them yet (lineage/record/recovery.h), and they are long over. Processes of
// another machine cannot be seen, so its runs count.
base::Result<std::vector<RunId>> overlapping_runs(Store& store, RunId run);

// Call with the run's outputs written, in the caller's transaction. `earlier`: overlapping_runs()
// when the run began; later ones are found by their numbers. Returns what the run has missed for
// it, and adds the same to what the other runs have missed, which then are not complete either.
// Logs (streams.h) do not count, nor does a file that was handed down to one of them: several runs
// may share them.
base::Result<std::vector<Missed>> note_shared_outputs(Database& database, const RunRecord& run,
                                                      const std::vector<RunId>& earlier);

}  // namespace assay::store
