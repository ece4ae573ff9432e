#include "base/pareto.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

namespace assay::base {
namespace {

bool beats(const Tradeoff& a, const Tradeoff& b) {
  return a.x <= b.x && a.y <= b.y && (a.x < b.x || a.y < b.y);
}

// Few values, so that many are equal.
std::vector<Tradeoff> any_points() {
  std::vector<Tradeoff> points(*rc::gen::inRange<std::size_t>(0, 40));
  for (Tradeoff& p : points) {
    p = {static_cast<double>(*rc::gen::inRange(1, 12)),
         static_cast<double>(*rc::gen::inRange(1, 12))};
  }
  return points;
}

RC_GTEST_PROP(Pareto, TheFrontIsWhatNothingDominates, ()) {
  const std::vector<Tradeoff> points = any_points();
  std::vector<std::size_t> unbeaten;
  for (std::size_t i = 0; i < points.size(); ++i) {
    bool taken = true;
    for (std::size_t j = 0; j < points.size(); ++j) {
      const bool same = points[j].x == points[i].x && points[j].y == points[i].y;
      taken = taken && !beats(points[j], points[i]) && !(same && j < i);
    }
    if (taken) unbeaten.push_back(i);
  }
  std::vector<std::size_t> front = pareto_front(points);
  for (std::size_t k = 1; k < front.size(); ++k) {
    RC_ASSERT(points[front[k - 1]].x < points[front[k]].x);
    RC_ASSERT(points[front[k - 1]].y > points[front[k]].y);
  }
  std::sort(front.begin(), front.end());
  RC_ASSERT(front == unbeaten);
}

}  // namespace
}  // namespace assay::base
