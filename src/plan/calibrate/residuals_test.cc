#include "plan/calibrate/residuals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>

namespace assay::plan {
namespace {

TEST(WeightedQuantile, OfEqualWeightsIsBetweenTheMiddlesOfSteps) {
  const std::vector<WeightedValue> values = {{1, 1}, {2, 1}, {3, 1}, {4, 1}};
  EXPECT_DOUBLE_EQ(weighted_quantile(values, 0.5), 2.5);
  EXPECT_DOUBLE_EQ(weighted_quantile(values, 0.125), 1);
  EXPECT_DOUBLE_EQ(weighted_quantile(values, 0.25), 1.5);
  EXPECT_DOUBLE_EQ(weighted_quantile(values, 0.01), 1);
  EXPECT_DOUBLE_EQ(weighted_quantile(values, 0.99), 4);
}

TEST(WeightedQuantile, WhatHasNoWeightIsNotThere) {
  const std::vector<WeightedValue> values = {{-9, 0}, {1, 1}, {5, 0}, {2, 1}, {9, 0}};
  EXPECT_DOUBLE_EQ(weighted_quantile(values, 0.5), 1.5);
  EXPECT_DOUBLE_EQ(weighted_quantile(values, 0), 1);
  EXPECT_DOUBLE_EQ(weighted_quantile(values, 1), 2);
}

// A whole weight is so many copies of the value. Their quantile is within the copies' own ends.
RC_GTEST_PROP(WeightedQuantile, IsThatOfCopies, ()) {
  const auto picked = *rc::gen::nonEmpty(rc::gen::container<std::vector<std::pair<int, int>>>(
      rc::gen::pair(rc::gen::inRange(-50, 50), rc::gen::inRange(1, 9))));
  std::vector<WeightedValue> values;
  std::vector<int> copies;
  for (const auto& [value, weight] : picked) {
    values.push_back({static_cast<double>(value), static_cast<double>(weight)});
    copies.insert(copies.end(), static_cast<std::size_t>(weight), value);
  }
  std::sort(values.begin(), values.end(),
            [](const auto& a, const auto& b) { return a.value < b.value; });
  std::sort(copies.begin(), copies.end());
  const double part = *rc::gen::inRange(0, 1001) / 1000.0;
  const double found = weighted_quantile(values, part);
  // Between the neighbours of the value in which the part falls, which are its bounds by any
  // definition of a quantile.
  const auto at = std::min(copies.size() - 1,
                           static_cast<std::size_t>(part * static_cast<double>(copies.size())));
  const auto below = std::lower_bound(copies.begin(), copies.end(), copies[at]);
  const auto above = std::upper_bound(copies.begin(), copies.end(), copies[at]);
  RC_ASSERT(found >= (below == copies.begin() ? copies.front() : *std::prev(below)));
  RC_ASSERT(found <= (above == copies.end() ? copies.back() : *above));
}

TEST(FamilyOf, IsTheFirstTwoWords) {
  EXPECT_EQ(family_of("nanochat dev/LEADERBOARD.md run1 348fbb3"), "nanochat dev/LEADERBOARD.md");
  EXPECT_EQ(family_of("two words"), "two words");
  EXPECT_EQ(family_of("one"), "one");
  EXPECT_EQ(family_of(""), "");
}

std::vector<Residual> spread(SoftwareClass kind, const std::string& source, int count,
                             double width) {
  std::vector<Residual> residuals;
  for (int i = 0; i < count; ++i) {
    const double way = count == 1 ? 0 : 2.0 * i / (count - 1) - 1;
    residuals.push_back({.kind = kind, .source = source, .log_ratio = way * width});
  }
  return residuals;
}

TEST(IntervalTable, OfManyRowsIsTheirTenthAndNinetiethPercentile) {
  const auto table =
      interval_table(spread(SoftwareClass::kFused, "some source", 100'001, std::log(2)));
  const Interval& interval = table.of(SoftwareClass::kFused);
  EXPECT_NEAR(interval.low, std::pow(2, -0.8), 1e-4);
  EXPECT_NEAR(interval.high, std::pow(2, 0.8), 1e-4);
  EXPECT_EQ(interval.rows, 100'001);
}

TEST(IntervalTable, ClassWithoutRowsHasThatOfAll) {
  const auto table = interval_table(spread(SoftwareClass::kFused, "some source", 1001, 0.1));
  EXPECT_EQ(table.of(SoftwareClass::kMoe).rows, 0);
  EXPECT_NEAR(table.of(SoftwareClass::kMoe).low, std::exp(-0.08), 1e-4);
}

TEST(IntervalTable, ClassWithFewRowsIsBetweenItselfAndAll) {
  auto residuals = spread(SoftwareClass::kFused, "some source", 1000, 0.1);
  for (Residual& one : spread(SoftwareClass::kMoe, "other source", 25, 0.5))
    residuals.push_back(std::move(one));
  const Interval& few = interval_table(residuals).of(SoftwareClass::kMoe);
  EXPECT_GT(few.high, std::exp(0.1));
  EXPECT_LT(few.high, std::exp(0.4));
}

TEST(IntervalTable, LargeFamilyDoesNotDrownTheRest) {
  // Of one class: 900 rows of a source that is exact, 100 sources that are 50 % off.
  auto residuals = spread(SoftwareClass::kFused, "exact table", 900, 0.001);
  for (int i = 0; i < 100; ++i) {
    residuals.push_back({.kind = SoftwareClass::kFused,
                         .source = "source " + std::to_string(i),
                         .log_ratio = std::log(1.5)});
  }
  EXPECT_NEAR(interval_table(residuals).of(SoftwareClass::kFused).high, 1.5, 1e-6);
}

TEST(IntervalTable, WithoutRowsNothingIsKnown) {
  const Interval interval = interval_table({}).of(SoftwareClass::kMoe);
  EXPECT_EQ(interval.low, 0);
  EXPECT_TRUE(std::isinf(interval.high));
}

}  // namespace
}  // namespace assay::plan
