// A Dag as one self-contained SVG picture, laid out by layout.h, for light and dark pages.
#pragma once

#include <string>

#include "lineage/graph/dag_view.h"

namespace assay::lineage {

std::string dag_svg(const DagView& view);

}  // namespace assay::lineage
