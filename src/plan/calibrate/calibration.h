// Calibration: everything the planner takes from measured rows. `assay plan --calibrate` makes and
// writes one, and `assay plan --constants` reads it in place of the one the program ships with.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "plan/calibrate/rows.h"
#include "plan/calibrate/scores.h"
#include "plan/model/constants.h"
#include "plan/model/intervals.h"
#include "plan/plan.h"

namespace assay::plan {

// What constants were fitted to, so that plans can state the known errors.
struct FittedTo {
  std::vector<std::string> projects;  // projects whose steps are in the fit
  std::int64_t rows = 0;              // measured steps, or runs
  // If adjusted to runs of one job: the mean error on these runs afterwards.
  std::optional<double> own_error;
  // Each project predicted by constants that were fitted without it. For the shipped constants only
  // tests compute it.
  KindScore dense;
  KindScore mixtures;
};

// A sentence about the errors of constants from this file.
std::string described(const std::optional<FittedTo>& fitted, const std::string& file,
                      bool mixtures);

struct Calibration {
  Constants constants;
  MemoryConstants memory;
  IntervalTable intervals;  // errors of predictions of rows whose project was left out of the fit
  Seen seen;
  MemoryIntervals memory_intervals;   // absent in older files, which take those shipped
  std::optional<FittedTo> fitted_to;  // absent in older files

  [[nodiscard]] PlanInputs inputs(const Assumed& assumed) const;
};

Calibration shipped_calibration();

// Fits once to all rows and once without each project. Fails when no row was measured and can be
// predicted. Memory's constants stay as shipped where no row gives its memory, and so do the
// intervals of mixtures, or of dense models, where no row is of one.
base::Result<Calibration> calibrate(std::span<const Row> rows);

// The same model on one's own machine: a few runs that were measured there move the constants that
// they depend on, from where `general` has them. Intervals from other rows stay.
base::Result<Calibration> calibrate_to_runs(std::span<const Row> runs, const Calibration& general);

// One per row, in their order. Predictions point into rows.
std::vector<RowPrediction> predict_all(std::span<const Row> rows, const Calibration& calibration);

std::string to_json(const Calibration& calibration);
// `name` is the file's, for errors. Every key must be there and no other; constants must be within
// their bounds.
base::Result<Calibration> calibration_from_json(std::string_view text, const std::string& name);

}  // namespace assay::plan
