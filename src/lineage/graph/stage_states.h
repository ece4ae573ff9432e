// The project's stages as they are now, and why some of them are stale. Loaded from the store and
// compared with the disk. `assay status` prints this and `assay refresh` acts on it, so they agree.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "lineage/graph/live_stages.h"
#include "lineage/graph/staleness.h"
#include "store/store.h"

namespace assay::lineage {

struct StageStates {
  LiveStages stages;
  // For each stage, in the order of `stages`:
  std::vector<std::vector<Reason>> reasons;      // why it is stale; empty: it is not
  std::vector<std::vector<Reason>> doubts;       // why it is not known to be fresh
  std::vector<std::vector<Reason>> replaced;     // replaced_outputs() of each
  std::vector<std::vector<std::string>> edited;  // edited_outputs() of each
};

// Files for which `unread` returns true are being written: they are not read and count as
// unchanged.
base::Result<StageStates> load_stage_states(
    store::Store& store, const std::function<bool(const std::string& path)>& unread = {});

}  // namespace assay::lineage
