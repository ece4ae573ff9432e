// A run as a trace that Perfetto and chrome://tracing open: steps, validations, checkpoints and
// processes as slices, loss, throughput, memory and power as counters.
#pragma once

#include <string>

#include "report/run_record.h"

namespace assay::report {

// JSON, the format of Chrome's traces. Times are microseconds since the job began.
std::string perfetto(const RunRecord& run);

}  // namespace assay::report
