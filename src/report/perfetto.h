// A run as a trace that Perfetto and chrome://tracing open: steps, validations, checkpoints and
// processes as slices, loss, throughput, memory and power as counters.
#pragma once

#include <string>

#include "report/reported_run.h"

namespace assay::report {

// JSON, the format of Chrome's traces. Times are microseconds since the run began.
std::string perfetto(const ReportedRun& run);

}  // namespace assay::report
