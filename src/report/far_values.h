// Of a series: the few values that a chart would be flattened by.
#pragma once

#include <cstdint>
#include <limits>

#include "store/metrics.h"

namespace assay::report {

// The few values that would leave all others a line along the axis: where they begin, and what a
// reader is told instead. Far is what lies five times as far from the middle as all but one in a
// hundred do, and is several times the middle.
struct FarValues {
  double from = std::numeric_limits<double>::infinity();
  std::int64_t count = 0;
  std::int64_t step = 0;  // of the largest
  double most = 0;
};

FarValues far_values(const store::MetricSeries& series);

}  // namespace assay::report
