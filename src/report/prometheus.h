// A run's latest values in Prometheus' text format, for its textfile collector.
#pragma once

#include <string>

#include "report/reported_run.h"

namespace assay::report {

// Every metric is a gauge, assay_run_NAME, with the labels run, uid, name and process; a value that
// is not finite is NaN.
std::string prometheus(const ReportedRun& run);

}  // namespace assay::report
