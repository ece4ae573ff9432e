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

// The part of the weight below x: half of the own weight at each value, straight lines between.
// Below equal values by the first of them, so that it never falls.
double part_below(std::span<const WeightedValue> ordered, double x) {
  double sum = 0;
  for (const WeightedValue& one : ordered) sum += one.weight;
  std::vector<double> middles;
  double before = 0;
  for (const WeightedValue& one : ordered) {
    middles.push_back((before + one.weight / 2) / sum);
    before += one.weight;
  }
  if (x <= ordered.front().value) return x < ordered.front().value ? 0 : middles.front();
  for (std::size_t i = 1; i < ordered.size(); ++i) {
    const double from = ordered[i - 1].value;
    const double to = ordered[i].value;
    if (x <= to)
      return from == to ? middles[i - 1]
                        : middles[i - 1] + (middles[i] - middles[i - 1]) * (x - from) / (to - from);
  }
  return 1;
}

RC_GTEST_PROP(WeightedQuantile, IsWhereThePartOfTheWeightIsReached, ()) {
  const auto picked = *rc::gen::nonEmpty(rc::gen::container<std::vector<std::pair<int, int>>>(
      rc::gen::pair(rc::gen::inRange(-50, 50), rc::gen::inRange(1, 9))));
  std::vector<WeightedValue> values;
  for (const auto& [value, weight] : picked)
    values.push_back({static_cast<double>(value), static_cast<double>(weight)});
  std::sort(values.begin(), values.end(),
            [](const auto& a, const auto& b) { return a.value < b.value; });
  const double part = *rc::gen::inRange(1, 1000) / 1000.0;
  double low = values.front().value;
  double high = values.back().value;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (part_below(values, middle) < part ? low : high) = middle;
  }
  RC_ASSERT(std::abs(weighted_quantile(values, part) - high) < 1e-9);
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
  const ErrorInterval& interval = table.of(SoftwareClass::kFused);
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
  const ErrorInterval few = interval_table(residuals).of(SoftwareClass::kMoe);
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
  const ErrorInterval interval = interval_table({}).of(SoftwareClass::kMoe);
  EXPECT_EQ(interval.low, 0);
  EXPECT_TRUE(std::isinf(interval.high));
}

}  // namespace
}  // namespace assay::plan
