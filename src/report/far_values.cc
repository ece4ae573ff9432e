#include "report/far_values.h"

#include <algorithm>

#include "report/reported_run.h"

namespace assay::report {

FarValues far_values(const store::MetricSeries& series) {
  constexpr double kFar = 5;
  constexpr double kTimesMiddle = 3;
  const auto all = summary_of(&series);
  FarValues far;
  if (!all || all->median <= 0) return far;
  const double from =
      std::max(all->median + kFar * (all->p99 - all->median), kTimesMiddle * all->median);
  if (all->most <= from) return far;
  far.from = from;
  for (const store::MetricPoint& point : series.points) {
    if (!point.value || *point.value <= from) continue;
    ++far.count;
    if (*point.value > far.most) {
      far.most = *point.value;
      far.step = point.step;
    }
  }
  return far;
}

}  // namespace assay::report
