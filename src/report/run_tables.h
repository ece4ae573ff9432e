// Sections of a run's part: GPU work, lineage, where it ran, and every metric.
#pragma once

#include "report/page.h"
#include "report/reported_run.h"

namespace assay::report {

Section gpu_section(const ReportedRun& run);
Section lineage_section(const ReportedRun& run);
Section fingerprint_section(const ReportedRun& run);
Section metrics_section(const ReportedRun& run);

}  // namespace assay::report
