// A Dag as a picture: one self-contained SVG, laid out by layout.h, for light and dark pages; and
// input for Graphviz.
#pragma once

#include <string>

#include "lineage/graph/dag_view.h"

namespace assay::lineage {

std::string dag_svg(const DagView& view);
std::string dag_dot(const DagView& view);

}  // namespace assay::lineage
