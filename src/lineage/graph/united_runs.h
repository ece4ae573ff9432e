// A stage's run, united with the earlier runs of the stage whose outputs it left as they were. A
// second `make` reads and writes almost nothing; what the stage depends on is still what the first
// one read.
#pragma once

#include <string>
#include <unordered_set>

#include "base/result.h"
#include "store/run.h"
#include "store/store.h"

namespace assay::lineage {

// Adds to `run`, the current run of its stage with its lists, what earlier runs of the stage left
// and later ones have not written again, and what those read: of several reads of a path the newest
// counts. Their outputs are not added if `run` wrote files at new paths: then it did not repeat
// theirs (a file with the date in its name), and only the inputs of the same command count, if it
// read some of the same files. What a later run looked for and did not find does not count.
// Returns the paths of what was added and `run` itself neither read nor wrote.
base::Result<std::unordered_set<std::string>> unite_with_earlier(store::Store& store,
                                                                 store::RunRecord& run);

}  // namespace assay::lineage
