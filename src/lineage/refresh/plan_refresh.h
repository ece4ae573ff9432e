// What `assay refresh` would run, and the stages that a name on its command line stands for.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "lineage/graph/edit_obstacle.h"
#include "lineage/graph/stage_states.h"
#include "lineage/graph/stale_reason.h"
#include "store/store.h"

namespace assay::lineage {

// What refresh() would run now: the stale stages among `targets` (numbers; empty: all) and the
// stale stages that produce their inputs, in the order in which they would run.
struct PlannedRefresh {
  std::int64_t stage = 0;
  store::RunId run = 0;  // the stage's current run
  std::string command;
  std::vector<Reason> reasons;
  std::string obstacle;  // why it cannot be run again, and what to do; empty: it can
};
std::vector<PlannedRefresh> plan_refresh(const StageStates& states,
                                         const std::vector<std::int64_t>& targets,
                                         EditedOutputs edited);

// Numbers of the stages among `targets`, and of those that produce their inputs, that are not stale
// but of which another stage has replaced an output.
std::vector<std::int64_t> replaced_stages(const StageStates& states,
                                          const std::vector<std::int64_t>& targets);

// The same stages, as far as they are not stale, of which it is not known whether they are fresh.
std::vector<std::int64_t> unsure_stages(const StageStates& states,
                                        const std::vector<std::int64_t>& targets);

// The stages that a name on the command line stands for: one, or all that change a file.
base::Result<std::vector<std::int64_t>> stages_of_target(store::Store& store,
                                                         const LiveStages& stages,
                                                         std::string_view text,
                                                         const std::filesystem::path& directory);

}  // namespace assay::lineage
