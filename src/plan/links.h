// From what a cluster says about its links to what the model of a step wants to know about them.
#pragma once

#include "plan/work.h"
#include "spec/cluster.h"

namespace assay::plan {

// Of a cluster that went through the rules of spec. What it does not have limits nothing.
Links links_of(const spec::ClusterSpec& cluster);

}  // namespace assay::plan
