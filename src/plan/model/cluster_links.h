// Links of a cluster, as the model of a step needs them.
#pragma once

#include "base/result.h"
#include "plan/model/work.h"
#include "spec/cluster.h"

namespace assay::plan {

// A usage error if the cluster lacks the description of a link that it needs.
base::Result<Links> links_of(const spec::ClusterSpec& cluster);

}  // namespace assay::plan
