// The sections of a run's part (run_part.h). Each is empty if the run has nothing to show in it.
#pragma once

#include "base/json.h"
#include "report/page.h"
#include "report/reported_run.h"

namespace assay::report {

// run_sections_times.cc: step times, where the time went, checkpoints and failures.
Section steps_section(const ReportedRun& run);
Section times_section(const ReportedRun& run);
Section events_section(const ReportedRun& run);

// run_sections_curves.cc: loss, throughput, memory, power and other quantities over time.
Section curves_section(const ReportedRun& run);

// run_sections_ranks.cc: each rank's time and waiting compared with the prediction, and which one
// the others wait for; empty for a run with one rank.
Section ranks_section(const ReportedRun& run);
// {"ranks": […], "slowest": {…} or null}; null for a run with one rank.
base::Json ranks_json(const ReportedRun& run);

// run_sections.cc.
Section predicted_section(const ReportedRun& run);
Section cost_section(const ReportedRun& run);
Section gpu_section(const ReportedRun& run);
Section lineage_section(const ReportedRun& run);
Section fingerprint_section(const ReportedRun& run);
Section metrics_section(const ReportedRun& run);

}  // namespace assay::report
