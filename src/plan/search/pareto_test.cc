#include "plan/search/pareto.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

namespace assay::plan {
namespace {

bool beats(const TimeAndCost& a, const TimeAndCost& b) {
  return a.seconds <= b.seconds && a.cost <= b.cost && (a.seconds < b.seconds || a.cost < b.cost);
}

// Few values, so that many are equal.
std::vector<TimeAndCost> any_points() {
  std::vector<TimeAndCost> points(*rc::gen::inRange<std::size_t>(0, 40));
  for (TimeAndCost& p : points) {
    p = {static_cast<double>(*rc::gen::inRange(1, 12)),
         static_cast<double>(*rc::gen::inRange(1, 12))};
  }
  return points;
}

RC_GTEST_PROP(Pareto, TheFrontIsWhatNobodyBeats, ()) {
  const std::vector<TimeAndCost> points = any_points();
  std::vector<std::size_t> unbeaten;
  for (std::size_t i = 0; i < points.size(); ++i) {
    bool taken = true;
    for (std::size_t j = 0; j < points.size(); ++j) {
      const bool same = points[j].seconds == points[i].seconds && points[j].cost == points[i].cost;
      taken = taken && !beats(points[j], points[i]) && !(same && j < i);
    }
    if (taken) unbeaten.push_back(i);
  }
  std::vector<std::size_t> front = pareto_front(points);
  for (std::size_t k = 1; k < front.size(); ++k) {
    RC_ASSERT(points[front[k - 1]].seconds < points[front[k]].seconds);
    RC_ASSERT(points[front[k - 1]].cost > points[front[k]].cost);
  }
  std::sort(front.begin(), front.end());
  RC_ASSERT(front == unbeaten);
}

}  // namespace
}  // namespace assay::plan
