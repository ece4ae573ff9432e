// A run with everything in it that a report can show, for tests.
#pragma once

#include <cstdint>
#include <string>

#include "report/reported_run.h"

namespace assay::report::testing {

// Of so many steps, the 5th of which took very long; with checkpoints, a step that was left out,
// GPU work, lineage, a prediction and prices.
ReportedRun sample_run(std::int64_t steps);

// The same with these bytes wherever a text comes from outside: command, paths, names, units, …
ReportedRun hostile_run(const std::string& bytes);

}  // namespace assay::report::testing
