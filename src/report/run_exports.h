// A run in the formats of other programs: as a trace, and its latest values as metrics.
#pragma once

#include <string>

#include "report/reported_run.h"

namespace assay::report {

// A trace that Perfetto and chrome://tracing open (Chrome's JSON format): steps, validations,
// checkpoints and processes as slices, loss, throughput, memory and power as counters. Times are
// microseconds since the run began.
std::string perfetto(const ReportedRun& run);

// Prometheus' text format, for its textfile collector. Every metric is a gauge, assay_run_NAME,
// with the labels run, uid, name and process; a value that is not finite is NaN.
std::string prometheus(const ReportedRun& run);

}  // namespace assay::report
