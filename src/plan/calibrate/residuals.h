// Errors of predictions, as intervals for further predictions.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plan/calibrate/rows.h"
#include "plan/calibrate/scores.h"
#include "plan/model/intervals.h"

namespace assay::plan {

// Measured against predicted.
struct Residual {
  SoftwareClass kind = SoftwareClass::kFused;
  std::string project;
  double log_ratio = 0;  // log(measured / predicted)
};

// Of rows that are scored and have a prediction.
std::vector<Residual> residuals_of(std::span<const Row> rows,
                                   std::span<const RowPrediction> predictions);

struct WeightedValue {
  double value = 0;
  double weight = 0;
};
// The value below which `part` of the weight lies, half of each value's own weight being on either
// side of it; between two values in proportion, beyond the outermost nothing. Values must be in
// order and one must have weight.
double weighted_quantile(std::span<const WeightedValue> ordered, double part);

// From the tenth to the ninetieth percentile, by class, where every project weighs the same, and
// wider the fewer projects there are; the prediction itself is always inside. Dense classes are
// mixed with all dense rows as if three of their projects had been drawn from them; mixtures are by
// themselves.
IntervalTable interval_table(std::span<const Residual> residuals);

// What rows were about; flagged ones and those without a measured time left out.
RangeTable ranges_of(std::span<const Row> rows);
Seen seen_in(std::span<const Row> rows);

}  // namespace assay::plan
