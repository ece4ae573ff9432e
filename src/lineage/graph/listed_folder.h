// What has become of a folder that a stage listed (`cat data/*.csv`): names that are new or gone,
// if they matter. Pure.
#pragma once

#include <vector>

#include "lineage/graph/staleness.h"

namespace assay::lineage {

// A name in a listed folder that was not there then and that the stage would probably read now: it
// is of a kind (by its extension) that the stage read there; where it read nothing there, any name.
// Outputs of stages, hidden files, and Python's sources, which are listed at every import, do not
// count. Of names that are gone, those that the stage read are missing inputs; where it read
// nothing there, any name counts.
void check_listed(const LiveStages& stages, std::size_t stage, const store::PathFact& fact,
                  const DiskQuestions& disk, std::vector<Reason>& reasons);

}  // namespace assay::lineage
