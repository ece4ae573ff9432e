// collect_parts(): rank 0 reads the other ranks' parts from their folder (part_folder.h). It waits
// as long as the ranks make progress, and lists the ranks whose part did not arrive.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "lineage/record/part.h"
#include "lineage/record/part_folder.h"

namespace assay::lineage {

struct PartTimeouts {
  std::chrono::milliseconds first_heartbeat =
      PartFolder::kAnnouncementTimeout;         // for a rank without a state file
  std::chrono::milliseconds heartbeat{30'000};  // for a rank that went silent
  std::chrono::milliseconds total{3'600'000};
};

struct CollectedParts {
  std::vector<Part> parts;             // by rank, without rank 0's
  std::vector<store::Missed> missing;  // for the run's record
};

// The parts that belong to the run of the folder's rank 0. `waiting` is called once if this takes
// long.
CollectedParts collect_parts(const PartFolder& folder, const PartTimeouts& timeouts,
                             const std::function<void(const std::string&)>& waiting);

}  // namespace assay::lineage
