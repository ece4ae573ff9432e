// Turns errors of predictions into intervals for further predictions.
#pragma once

#include <optional>
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

// Few projects say little about the next one: by this the logarithms of an interval's ends are
// larger, as Student's tenth percentile is larger than a normal one.
double wider_by_projects(double projects);

// The tenth to the ninetieth percentile per class, with the same weight for every project, widened
// more the fewer projects there are. The prediction itself is always inside. A dense class is mixed
// with all dense rows as if three of its projects had been drawn from them; mixtures are a class of
// their own.
IntervalTable interval_table(std::span<const Residual> residuals);

// Measured over predicted memory: the tenth to the ninetieth percentile with the same weight for
// every project. Either of the rows whose allocator was read (what is needed), widened like the
// intervals of steps and with the prediction inside, or of the others (what nvidia-smi shows).
// Nothing where no such row has a prediction.
std::optional<ErrorInterval> needed_memory_of(std::span<const Row> rows,
                                              std::span<const RowPrediction> predictions);
std::optional<ErrorInterval> shown_memory_of(std::span<const Row> rows,
                                             std::span<const RowPrediction> predictions);

// Ranges that the rows cover, without flagged rows and rows without a measured time.
RangeTable ranges_of(std::span<const Row> rows);
Seen seen_in(std::span<const Row> rows);

}  // namespace assay::plan
