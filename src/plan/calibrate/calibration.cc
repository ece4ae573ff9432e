#include "plan/calibrate/calibration.h"

#include <algorithm>

#include "plan/calibrate/cross_validation.h"
#include "plan/calibrate/fit.h"
#include "plan/calibrate/residuals.h"
#include "plan/calibrate/scores.h"

namespace assay::plan {

Calibration shipped_calibration() {
  return {.constants = shipped_constants(),
          .memory = shipped_memory_constants(),
          .known_source = shipped_intervals(true),
          .unknown_source = shipped_intervals(false),
          .ranges = shipped_ranges()};
}

base::Result<Calibration> calibrate(std::span<const Row> rows) {
  if (std::none_of(rows.begin(), rows.end(), has_time)) {
    return base::fail(base::usage_error("rows", "none has a measured step that can be predicted",
                                        "fill in step_s, and what reasons say is missing"));
  }
  Calibration made{.constants = fit(rows), .memory = shipped_memory_constants()};
  if (std::any_of(rows.begin(), rows.end(), has_memory)) made.memory = fit_memory(rows);
  const auto seen = predict_all(rows, made.constants, made.memory, {});
  made.known_source = interval_table(residuals_of(rows, seen));
  made.unknown_source = interval_table(residuals_of(rows, cross_validate(rows)));
  made.ranges = ranges_of(rows);
  return made;
}

}  // namespace assay::plan
