// collect_parts(): rank 0 takes the other ranks' parts out of their folder (part_folder.h). It
// waits as long as something grows there, and names the ranks whose part does not come.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "lineage/record/part.h"
#include "lineage/record/part_folder.h"

namespace assay::lineage {

struct Patience {
  std::chrono::milliseconds for_any = PartFolder::kPatience;  // that was never heard of
  std::chrono::milliseconds without_change{30'000};           // of those that were
  std::chrono::milliseconds in_all{3'600'000};
};

struct CollectedParts {
  std::vector<Part> parts;             // by rank, without rank 0's
  std::vector<store::Missed> missing;  // for the run's record
};

// What belongs to the run of the folder's rank 0. `waiting` is called once if it takes long.
CollectedParts collect_parts(const PartFolder& folder, const Patience& patience,
                             const std::function<void(const std::string&)>& waiting);

}  // namespace assay::lineage
