// Whether a folder that a stage listed (`cat data/*.csv`) has changed in a way that matters: names
// that are new or gone. Pure.
#pragma once

#include <vector>

#include "lineage/graph/staleness.h"

namespace assay::lineage {

// A new name is a reason if the stage would probably read it: it has an extension of which the
// stage read files in this folder, or the stage read nothing there. Outputs of stages, hidden
// files, and Python sources (listed at every import) do not count. A name that is gone is a reason
// only if the stage read nothing there; otherwise files that it read are missing inputs anyway.
void check_listed(const LiveStages& stages, std::size_t stage, const store::PathFact& fact,
                  const DiskQueries& disk, std::vector<Reason>& reasons);

}  // namespace assay::lineage
