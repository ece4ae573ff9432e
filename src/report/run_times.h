// Sections of a run's part: step times, where the time went, checkpoints and failures.
#pragma once

#include "report/page.h"
#include "report/reported_run.h"

namespace assay::report {

Section steps_section(const ReportedRun& run);
Section times_section(const ReportedRun& run);
Section events_section(const ReportedRun& run);

}  // namespace assay::report
