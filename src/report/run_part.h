// A run of the store as a part of a page.
#pragma once

#include <cstddef>

#include "report/page.h"
#include "report/reported_run.h"

namespace assay::report {

// Points per series that raw data has on a page; of longer series, those that plot::thinned()
// keeps.
inline constexpr std::size_t kMostEmbedded = 2000;

Part run_part(const ReportedRun& run, std::size_t most_points = kMostEmbedded);

// The sections of it, each of what there is. run_steps.cc:
Section steps_section(const ReportedRun& run);
// run_curves.cc:
Section curves_section(const ReportedRun& run);
// run_times.cc:
Section times_section(const ReportedRun& run);
Section events_section(const ReportedRun& run);
// run_money.cc:
Section predicted_section(const ReportedRun& run);
Section cost_section(const ReportedRun& run);
// run_tables.cc:
Section gpu_section(const ReportedRun& run);
Section lineage_section(const ReportedRun& run);
Section fingerprint_section(const ReportedRun& run);
Section metrics_section(const ReportedRun& run);
// run_json.cc:
base::Json run_json(const ReportedRun& run, std::size_t most_points);

// Checkpoints that the run left, by step: bytes of their files.
struct CheckpointLeft {
  std::int64_t step = 0;
  std::int64_t files = 0;
  std::int64_t bytes = 0;
};
std::vector<CheckpointLeft> checkpoints_of(const store::RunRecord& record);

// Joules that were measured, of all sources together.
std::optional<double> joules_of(const ReportedRun& run);

}  // namespace assay::report
