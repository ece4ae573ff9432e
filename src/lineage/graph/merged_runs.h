// Combines a stage's current run with the earlier runs of the stage whose outputs it kept. A second
// `make` reads and writes almost nothing, but the stage still depends on what the first one read.
#pragma once

#include <string>
#include <unordered_set>

#include "base/result.h"
#include "store/run.h"
#include "store/store.h"

namespace assay::lineage {

// `run` is the current run of its stage, with its lists. Adds the outputs of earlier runs that no
// later run wrote again, and the inputs of those runs; of several reads of a path the newest
// counts. If `run` wrote a path that an earlier run did not (a date in the name), and no later run
// read what that run left, `run` did not repeat it: then its outputs are not added, and its inputs
// only if it ran the same command and both read some of the same files. Files that a later run
// looked for and did not find are not added. Returns the paths that were added and that `run`
// itself neither read nor wrote.
base::Result<std::unordered_set<std::string>> merge_earlier_runs(store::Store& store,
                                                                 store::RunRecord& run);

}  // namespace assay::lineage
