// The project's stages as they are now, and why some of them are stale. Loaded from the store and
// compared with the disk. `assay status` prints this and `assay refresh` acts on it, so they agree.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "lineage/graph/live_stages.h"
#include "lineage/graph/staleness.h"
#include "store/store.h"

namespace assay::lineage {

struct StageStates {
  LiveStages stages;
  // For each stage, in the order of `stages`; empty: it is fresh.
  std::vector<std::vector<Reason>> reasons;
  // Outputs that were changed by hand, or by something unrecorded: no run left what is there now,
  // so that it would be lost if the stage ran again.
  std::set<std::string> edited;
};

// Files for which `unread` says so are not read and count as unchanged: they are being written.
base::Result<StageStates> load_stage_states(
    store::Store& store, const std::function<bool(const std::string& path)>& unread = {});

}  // namespace assay::lineage
