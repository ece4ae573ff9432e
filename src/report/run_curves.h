// A section of a run's part: loss, throughput, memory, power and other quantities over time.
#pragma once

#include "report/page.h"
#include "report/reported_run.h"

namespace assay::report {

Section curves_section(const ReportedRun& run);

}  // namespace assay::report
