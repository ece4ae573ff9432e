// The predicted time of a collective on a cluster, from the planner's network model: `collective`
// cases.
#pragma once

#include <string_view>

#include "base/json.h"
#include "base/result.h"

namespace assay::suite {

// "all_reduce 1GB p4d-24xlarge 32 cluster.nodes=4": operation, size, cluster, ranks (all of the
// cluster's if omitted), and overrides of the cluster. Gives {"seconds", "bus_gb_s", "algorithm",
// "ranks"}.
base::Result<base::Json> collective_json(std::string_view text);

}  // namespace assay::suite
