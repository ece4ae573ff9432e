// Why a stage is not run again: it would overwrite or change a file that was edited by hand. One
// rule for `assay run @N` and `assay refresh`.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "lineage/graph/live_stages.h"

namespace assay::lineage {

// kKeep: an output that was changed by hand is an obstacle.
enum class EditedOutputs { kKeep, kOverwrite };

// The obstacle of a stage that would overwrite one of `edited` (edited_outputs(), staleness.h), and
// what to do; empty: none.
std::string edit_obstacle(const LiveStages& stages, std::size_t stage,
                          const std::vector<std::string>& edited, EditedOutputs policy);

}  // namespace assay::lineage
