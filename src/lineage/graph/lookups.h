// Whether what a stage asked about, without reading it, is as it was: the names in folders that it
// listed, files that it looked for in vain, and files of which it was told that they exist. Pure.
#pragma once

#include <vector>

#include "lineage/graph/staleness.h"

namespace assay::lineage {

// Adds what differs to `found`: to its reasons where the stage would probably do something else, to
// its doubts where it may.
void check_listed(const LiveStages& stages, std::size_t stage, const store::PathFact& fact,
                  const DiskQueries& disk, Freshness& found);
void check_absent(const LiveStages& stages, std::size_t stage, const store::PathFact& fact,
                  const DiskQueries& disk, Freshness& found);
void check_queried(const LiveStages& stages, std::size_t stage, const store::PathFact& fact,
                   const DiskQueries& disk, Freshness& found);

}  // namespace assay::lineage
