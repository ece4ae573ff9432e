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
  std::string source;
  double log_ratio = 0;  // log(measured / predicted)
};

// Of rows that are scored and have a prediction.
std::vector<Residual> residuals_of(std::span<const Row> rows,
                                   std::span<const RowPrediction> predictions);

// Sources that are off together, being of one project: those with the same first two words.
std::string_view family_of(std::string_view source);

struct WeightedValue {
  double value = 0;
  double weight = 0;
};
// The value below which `part` of the weight lies, half of each value's own weight being on either
// side of it; between two values in proportion, beyond the outermost nothing. Values must be in
// order and one must have weight.
double weighted_quantile(std::span<const WeightedValue> ordered, double part);

// From the tenth to the ninetieth percentile, by class. Rows of a family that has n count n^-1/2
// each, and each class is mixed with all residuals as if 25 of its rows had been drawn from them: a
// class with few rows has little weight by itself.
IntervalTable interval_table(std::span<const Residual> residuals);

// What rows were about; flagged ones and those without a measured time left out.
RangeTable ranges_of(std::span<const Row> rows);

}  // namespace assay::plan
