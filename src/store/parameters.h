// RunParameters: names and values that the program inside a run reports as its settings, as it
// reports metrics (metrics.h). Table `run_parameter`.
#pragma once

#include <map>
#include <string>

#include "base/result.h"
#include "store/run.h"
#include "store/store.h"

namespace assay::store {

using RunParameters = std::map<std::string, std::string>;

// In one transaction; an existing parameter gets the new value.
base::Result<void> write_parameters(Store& store, RunId run, const RunParameters& parameters);
base::Result<RunParameters> load_parameters(Store& store, RunId run);

}  // namespace assay::store
