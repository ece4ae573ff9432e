// Parameters: names and values with which a run says that it was run. The program inside the run
// reports them, like metrics (metrics.h). Table `run_parameter`.
#pragma once

#include <map>
#include <string>

#include "base/result.h"
#include "store/run.h"
#include "store/store.h"

namespace assay::store {

using Parameters = std::map<std::string, std::string>;

// In one transaction; a parameter that is there gets the new value.
base::Result<void> write_parameters(Store& store, RunId run, const Parameters& parameters);
base::Result<Parameters> load_parameters(Store& store, RunId run);

}  // namespace assay::store
