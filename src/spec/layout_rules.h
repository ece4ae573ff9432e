// Rules of a layout: the degrees against the number of ranks, and against the model they divide.
// Internal to src/spec.
#pragma once

#include "base/result.h"
#include "spec/job.h"
#include "spec/value.h"

namespace assay::spec {

// Fills in dp and ranks from the cluster, then checks the layout against cluster and model.
// `ranks_from_layout`: ignores the number of devices in the cluster.
base::Result<void> complete_layout(JobSpec& job, const Value& document,
                                   bool ranks_from_layout = false);

}  // namespace assay::spec
