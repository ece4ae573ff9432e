// A Dag as text: for `assay dag`, and as trees for `assay lineage`.
#pragma once

#include <string>

#include "lineage/graph/dag_view.h"

namespace assay::lineage {

// On a terminal, long commands are cut.
enum class Commands { kWhole, kCut };

// A block per run, producers first: its inputs with the runs that made them, its outputs with the
// runs that read them.
std::string dag_text(const DagView& view, Commands commands = Commands::kWhole);

// What an artifact was made from, as a tree towards its origins, and what was made from it. A run
// that was shown before is only named. The Dag must have a file as its subject.
std::string lineage_up_text(const DagView& view, Commands commands = Commands::kWhole);
std::string lineage_down_text(const DagView& view, Commands commands = Commands::kWhole);

}  // namespace assay::lineage
