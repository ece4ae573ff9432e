// A Dag in the forms that `assay dag` writes.
#pragma once

#include <string>

#include "base/json.h"
#include "lineage/graph/dag_view.h"

namespace assay::lineage {

// A block per run, producers first: what it read, from whom, and what it left, for whom.
std::string dag_text(const DagView& view);
// Graphviz.
std::string dag_dot(const DagView& view);
// One self-contained picture, laid out here, for light and dark pages.
std::string dag_svg(const DagView& view);
// runs[{id,stage,command,…,inputs[],outputs[]}], files[{path,blake3,size,producer,consumers[]}]
base::Json dag_json(const Dag& dag);

// What an artifact came from, as a tree towards its origins, and what came from it; a run that was
// shown before is only named. The Dag must have been asked for a file.
std::string lineage_up_text(const DagView& view);
std::string lineage_down_text(const DagView& view);

}  // namespace assay::lineage
