// A Dag for other programs: Graphviz and JSON.
#pragma once

#include <string>

#include "base/json.h"
#include "lineage/graph/dag_view.h"

namespace assay::lineage {

std::string dag_dot(const DagView& view);
// runs[{id,stage,command,…,inputs[],outputs[]}], files[{path,blake3,size,producer,consumers[]}]
base::Json dag_json(const Dag& dag);

}  // namespace assay::lineage
