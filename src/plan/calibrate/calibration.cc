#include "plan/calibrate/calibration.h"

#include <algorithm>
#include <cmath>

#include "plan/calibrate/cross_validation.h"
#include "plan/calibrate/fit.h"
#include "plan/calibrate/residuals.h"
#include "plan/calibrate/scores.h"

namespace assay::plan {
namespace {

// A step measured on the very machine is trusted to a percent or so, not to the 5 %
// by which tables of others are off.
constexpr double kPullOfOwnRuns = 0.02;

base::Result<void> check_measured(std::span<const Row> rows) {
  if (std::any_of(rows.begin(), rows.end(), has_time)) return {};
  return base::fail(base::usage_error("rows", "none has a measured step that can be predicted",
                                      "fill in step_s, and what the reasons name as missing"));
}

}  // namespace

PlanInputs Calibration::inputs(const Assumed& assumed) const {
  return {
      .assumed = assumed, .constants = {constants, memory}, .intervals = intervals, .seen = seen};
}

std::vector<RowPrediction> predict_all(std::span<const Row> rows, const Calibration& calibration) {
  return predict_all(rows, calibration.constants, calibration.memory, calibration.intervals,
                     calibration.seen);
}

Calibration shipped_calibration() {
  return {.constants = shipped_constants(),
          .memory = shipped_memory_constants(),
          .intervals = shipped_intervals(),
          .seen = shipped_seen()};
}

base::Result<Calibration> calibrate(std::span<const Row> rows) {
  ASSAY_TRY_VOID(check_measured(rows));
  Calibration made{.constants = fit(rows), .memory = shipped_memory_constants()};
  if (std::any_of(rows.begin(), rows.end(), has_memory)) made.memory = fit_memory(rows);
  made.intervals = interval_table(residuals_of(rows, cross_validate(rows)));
  // Rows of dense models alone say nothing about mixtures, and the other way round.
  for (std::size_t c = 0; c < kSoftwareClasses; ++c) {
    if (!std::isfinite(made.intervals.by_class[c].high))
      made.intervals.by_class[c] = shipped_intervals().by_class[c];
  }
  made.seen = seen_in(rows);
  return made;
}

base::Result<Calibration> calibrate_to_runs(std::span<const Row> runs, const Calibration& general) {
  ASSAY_TRY_VOID(check_measured(runs));
  Calibration made = general;
  made.constants =
      fit(runs, {.constants = general.constants, .pull = kPullOfOwnRuns, .habits = false});
  return made;
}

}  // namespace assay::plan
