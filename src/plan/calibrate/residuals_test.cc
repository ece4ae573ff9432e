#include "plan/calibrate/residuals.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>

#include "plan/calibrate/row_text.h"

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
    residuals.push_back({.kind = kind, .project = source, .log_ratio = way * width});
  }
  return residuals;
}

std::vector<Residual> of_projects(SoftwareClass kind, int projects, int rows, double width) {
  std::vector<Residual> residuals;
  for (int i = 0; i < projects; ++i)
    for (Residual& one : spread(kind, fmt::format("{} {}", to_text(kind), i), rows, width))
      residuals.push_back(std::move(one));
  return residuals;
}

// The model's structure was chosen by residuals of dense rows: by so much theirs are wider.
constexpr double kDenseWider = 1.65;

TEST(IntervalTable, OfManyProjectsIsTheirTenthAndNinetiethPercentile) {
  const auto table = interval_table(of_projects(SoftwareClass::kFused, 2000, 101, std::log(2)));
  const ErrorInterval& interval = table.of(SoftwareClass::kFused);
  EXPECT_NEAR(interval.low, std::pow(2, -0.8 * kDenseWider), 0.01);
  EXPECT_NEAR(interval.high, std::pow(2, 0.8 * kDenseWider), 0.02);
  EXPECT_EQ(interval.rows, 2000 * 101);
  EXPECT_EQ(interval.projects, 2000);
}

TEST(IntervalTable, FewProjectsSayLess) {
  const auto width = [](int projects) {
    const auto table = interval_table(of_projects(SoftwareClass::kMoe, projects, 101, 0.1));
    return std::log(table.of(SoftwareClass::kMoe).high);
  };
  EXPECT_NEAR(width(2), 1.25 * (1 + 1.35 / 2) * 0.08, 0.002);
  EXPECT_NEAR(width(4), 1.25 * (1 + 1.35 / 4) * 0.08, 0.002);
}

TEST(IntervalTable, DenseClassWithoutRowsHasThatOfAllDenseRows) {
  const auto table = interval_table(of_projects(SoftwareClass::kFused, 500, 11, 0.1));
  EXPECT_EQ(table.of(SoftwareClass::kTorchEager).rows, 0);
  EXPECT_NEAR(table.of(SoftwareClass::kTorchEager).low, table.of(SoftwareClass::kFused).low, 1e-9);
  EXPECT_TRUE(std::isinf(table.of(SoftwareClass::kMoe).high));  // dense rows say nothing of it
}

TEST(IntervalTable, MixturesAreNotNarrowedByDenseRows) {
  auto residuals = of_projects(SoftwareClass::kMoe, 10, 101, 0.5);
  const ErrorInterval alone = interval_table(residuals).of(SoftwareClass::kMoe);
  for (Residual& one : of_projects(SoftwareClass::kFused, 50, 101, 0.01))
    residuals.push_back(std::move(one));
  EXPECT_EQ(interval_table(residuals).of(SoftwareClass::kMoe).high, alone.high);
}

TEST(IntervalTable, LargeProjectDoesNotDrownTheRest) {
  // Of one class: 900 rows of a project that is exact, 100 projects that are 50 % off.
  auto residuals = spread(SoftwareClass::kFused, "exact table", 900, 0.001);
  for (int i = 0; i < 100; ++i) {
    residuals.push_back({.kind = SoftwareClass::kFused,
                         .project = "project " + std::to_string(i),
                         .log_ratio = std::log(1.5)});
  }
  const double wider = kDenseWider * (1 + 1.35 / 101);
  EXPECT_NEAR(interval_table(residuals).of(SoftwareClass::kFused).high, std::pow(1.5, wider), 1e-6);
}

TEST(IntervalTable, WithoutRowsNothingIsKnown) {
  const ErrorInterval interval = interval_table({}).of(SoftwareClass::kMoe);
  EXPECT_EQ(interval.low, 0);
  EXPECT_TRUE(std::isinf(interval.high));
}

}  // namespace
}  // namespace assay::plan
