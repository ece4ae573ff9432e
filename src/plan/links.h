// From what is said about links to what the model of a step wants to know about them.
#pragma once

#include "plan/work.h"
#include "spec/cluster.h"

namespace assay::plan {

// Bus bandwidth of a ring through a node, by the bandwidth that each card's link has in one
// direction. `everywhere`: NVLink connects every card with every other, not pairs of them.
double ring_inside(double link, bool everywhere);

// Of a cluster that went through the rules of spec.
Links links_of(const spec::ClusterSpec& cluster);

}  // namespace assay::plan
