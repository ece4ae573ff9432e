// A run's latest values as Prometheus reads them: for a textfile collector, or whoever scrapes.
#pragma once

#include <string>

#include "report/reported_run.h"

namespace assay::report {

// The text exposition format, version 0.0.4. Every quantity is a gauge, assay_run_NAME, with run,
// uid, run and process as labels; what is no finite number is NaN.
std::string prometheus(const ReportedRun& run);

}  // namespace assay::report
