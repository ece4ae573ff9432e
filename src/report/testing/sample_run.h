// A run with everything that a report can show, for tests.
#pragma once

#include <cstdint>
#include <string>

#include "report/reported_run.h"

namespace assay::report::testing {

// Has `steps` steps, the 5th of which took very long; with checkpoints, a skipped step, GPU work,
// lineage, a prediction and prices.
ReportedRun sample_run(std::int64_t steps);

// The same with these bytes in every text of external origin: command, paths, names, units, …
ReportedRun hostile_run(const std::string& bytes);

}  // namespace assay::report::testing
