// Sections of a run's part: predicted versus measured, and cost and carbon.
#pragma once

#include "report/page.h"
#include "report/reported_run.h"

namespace assay::report {

Section predicted_section(const ReportedRun& run);
Section cost_section(const ReportedRun& run);

}  // namespace assay::report
