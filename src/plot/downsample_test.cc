// Downsampling drops points, but never extremes.
#include "plot/downsample.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>

namespace assay::plot {
namespace {

std::vector<double> any_series() {
  return *rc::gen::container<std::vector<double>>(
      *rc::gen::inRange<std::size_t>(0, 4000),
      rc::gen::map(rc::gen::inRange(-1000, 1001),
                   [](int n) { return n == 1000 ? std::nan("") : static_cast<double>(n) / 7; }));
}

RC_GTEST_PROP(Downsample, KeepsEndsExtremesAndOrderInFewPlaces, ()) {
  const std::vector<double> values = any_series();
  const auto most = static_cast<std::size_t>(*rc::gen::inRange(8, 500));
  const std::vector<std::size_t> kept = downsample(values, most);
  RC_ASSERT(kept.size() <= most);
  RC_ASSERT(std::adjacent_find(kept.begin(), kept.end(), std::greater_equal<>()) == kept.end());
  if (values.empty()) return;
  RC_ASSERT(kept.front() == 0U && kept.back() == values.size() - 1);
  const auto extremes = [](auto begin, auto end, auto value_of) {
    double least = INFINITY;
    double largest = -INFINITY;
    bool gap = false;
    for (auto i = begin; i != end; ++i) {
      const double value = value_of(*i);
      gap = gap || std::isnan(value);
      least = std::fmin(least, value);
      largest = std::fmax(largest, value);
    }
    return std::tuple(least, largest, gap);
  };
  RC_ASSERT(extremes(values.begin(), values.end(), [](double v) { return v; }) ==
            extremes(kept.begin(), kept.end(), [&](std::size_t i) { return values[i]; }));
}

// Not only the global extremes: a spike of one step is kept anywhere.
RC_GTEST_PROP(Downsample, KeepsEverySpike, ()) {
  std::vector<double> values(static_cast<std::size_t>(*rc::gen::inRange(1000, 20'000)), 1.0);
  const auto spikes = *rc::gen::container<std::vector<std::size_t>>(
      5, rc::gen::inRange<std::size_t>(0, values.size()));
  for (const std::size_t at : spikes) values[at] = 50 + static_cast<double>(at % 7);
  const std::vector<std::size_t> kept = downsample(values, 1200);
  std::size_t found = 0;
  const std::size_t stretch = values.size() / ((1200 - 2) / 3) + 2;
  for (const std::size_t at : spikes) {
    // It, or a higher one beside it that would cover it on the drawing.
    found += std::any_of(kept.begin(), kept.end(), [&](std::size_t place) {
      const std::size_t away = place > at ? place - at : at - place;
      return values[place] >= values[at] && away <= stretch;
    });
  }
  RC_ASSERT(found == spikes.size());
}

RC_GTEST_PROP(DownsampleToBand, ReachesFromTheLeastToTheLargestOfEveryStretch, ()) {
  const std::vector<double> values = any_series();
  std::vector<LinePoint> points;
  for (std::size_t i = 0; i < values.size(); ++i)
    points.push_back({static_cast<double>(i), values[i]});
  const auto most = static_cast<std::size_t>(*rc::gen::inRange(8, 500));
  const std::vector<LinePoint> made = downsample_to_band(points, most);
  RC_ASSERT(made.size() <= most || made.size() == points.size());
  // Every value lies in the band of the point that represents it, and bands are no wider than
  // needed.
  std::vector<bool> low_met(made.size());
  std::vector<bool> high_met(made.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(values[i]) || made.size() == points.size()) continue;
    std::size_t s = i * made.size() / values.size();
    while (s + 1 < made.size() && (s + 1) * values.size() / made.size() <= i) ++s;
    RC_ASSERT(made[s].interval.has_value());
    RC_ASSERT(made[s].interval->low <= values[i] && values[i] <= made[s].interval->high);
    low_met[s] = low_met[s] || made[s].interval->low == values[i];
    high_met[s] = high_met[s] || made[s].interval->high == values[i];
  }
  for (std::size_t s = 0; s < made.size(); ++s) {
    if (made[s].interval) RC_ASSERT(low_met[s] && high_met[s]);
  }
}

TEST(Downsample, LeavesAFewAlone) {
  EXPECT_EQ(downsample(std::vector<double>{3, 1, 2}, 8), (std::vector<std::size_t>{0, 1, 2}));
  EXPECT_TRUE(downsample({}, 100).empty());
}

}  // namespace
}  // namespace assay::plot
