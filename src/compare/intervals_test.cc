// The signed-rank interval against published tables and examples, and against brute force.
#include "compare/intervals.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

namespace assay::compare {
namespace {

std::vector<double> sorted_copy(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values;
}

std::vector<double> all_walsh_averages(const std::vector<double>& values) {
  std::vector<double> averages;
  for (std::size_t i = 0; i < values.size(); ++i) {
    for (std::size_t j = i; j < values.size(); ++j) averages.push_back((values[i] + values[j]) / 2);
  }
  return sorted_copy(std::move(averages));
}

// Critical values for two-sided 0.05 in any table of Wilcoxon's T (McCornack, "Extended tables of
// the Wilcoxon matched pair signed rank statistic", 1965): the interval begins one further in.
TEST(SignedRank, DepthsAreThePublishedCriticalValues) {
  const std::vector<std::pair<std::size_t, std::size_t>> table = {
      {6, 0},   {7, 2},   {8, 3},   {9, 5},   {10, 8},   {11, 10},  {12, 13}, {13, 17},
      {14, 21}, {15, 25}, {20, 52}, {25, 89}, {30, 137}, {40, 264}, {50, 434}};
  for (const auto& [count, critical] : table) {
    EXPECT_EQ(signed_rank_depth(count, 0.05), critical + 1) << count;
  }
}

TEST(SignedRank, FewDifferencesPromiseNothing) {
  for (std::size_t count = 1; count < 6; ++count)
    EXPECT_FALSE(signed_rank_depth(count, 0.05)) << count;
  EXPECT_FALSE(signed_rank_interval({}, 0.05));
}

TEST(SignedRank, TheNormalDistributionGoesOnWhereTheExactOneEnds) {
  const auto last = static_cast<double>(*signed_rank_depth(100, 0.05));
  const auto next = static_cast<double>(*signed_rank_depth(101, 0.05));
  const auto before = static_cast<double>(*signed_rank_depth(99, 0.05));
  EXPECT_NEAR(next - last, last - before, 3);
}

// Hollander and Wolfe, "Nonparametric Statistical Methods", table 3.1: depression scores of nine
// patients before and after; the estimate is -0.46 and the interval from -0.786 to -0.010.
TEST(SignedRank, HollanderAndWolfesPatients) {
  const std::vector<double> before = {1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30};
  const std::vector<double> after = {0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29};
  std::vector<double> change;
  for (std::size_t i = 0; i < before.size(); ++i) change.push_back(after[i] - before[i]);
  change = sorted_copy(change);
  EXPECT_NEAR(hodges_lehmann(change), -0.46, 1e-9);
  const auto interval = signed_rank_interval(change, 0.05);
  ASSERT_TRUE(interval);
  EXPECT_NEAR(interval->low, -0.786, 1e-9);
  EXPECT_NEAR(interval->high, -0.010, 1e-9);
}

std::vector<double> any_differences() {
  // Few distinct values, so that there are ties.
  auto values = *rc::gen::container<std::vector<int>>(rc::gen::inRange(-40, 40));
  values.push_back(0);
  std::vector<double> differences;
  for (const int value : values) differences.push_back(value / 7.0);
  return sorted_copy(std::move(differences));
}

RC_GTEST_PROP(SignedRankProperty, CountingFindsTheAverageThatAListHas, ()) {
  const std::vector<double> sorted = any_differences();
  const std::vector<double> list = all_walsh_averages(sorted);
  const auto k = *rc::gen::inRange<std::size_t>(1, list.size() + 1);
  RC_ASSERT(std::abs(walsh_average(sorted, k) - list[k - 1]) < 1e-12);
}

RC_GTEST_PROP(SignedRankProperty, AnIntervalMovesAndTurnsWithItsDifferences, ()) {
  const std::vector<double> sorted = any_differences();
  RC_PRE(sorted.size() >= 6U);
  const ConfidenceInterval interval = *signed_rank_interval(sorted, 0.05);
  RC_ASSERT(interval.low <= hodges_lehmann(sorted) && hodges_lehmann(sorted) <= interval.high);
  std::vector<double> turned;
  for (const double value : sorted) turned.push_back(3 - value);
  const ConfidenceInterval other = *signed_rank_interval(sorted_copy(turned), 0.05);
  RC_ASSERT(std::abs(other.low - (3 - interval.high)) < 1e-12);
  RC_ASSERT(std::abs(other.high - (3 - interval.low)) < 1e-12);
}

RC_GTEST_PROP(SignedRankProperty, MoreConfidenceIsNeverNarrower, ()) {
  const std::vector<double> sorted = any_differences();
  RC_PRE(sorted.size() >= 9U);
  const ConfidenceInterval narrow = *signed_rank_interval(sorted, 0.1);
  const ConfidenceInterval wide = *signed_rank_interval(sorted, 0.01);
  RC_ASSERT(wide.low <= narrow.low && narrow.high <= wide.high);
}

}  // namespace
}  // namespace assay::compare
