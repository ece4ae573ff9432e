// Order statistics: their definitions on small inputs, and against sorting on arbitrary ones.
#include "base/statistics.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "base/random_draws.h"

namespace assay::base {
namespace {

TEST(Median, IsTheMiddleValueOrTheMeanOfTheTwoMiddleOnes) {
  EXPECT_EQ(median({7}), 7);
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 3, 2}), 2.5);
  EXPECT_EQ(median({1, 1, 9, 9}), 5);
}

TEST(Quantile, IsAValueByNearestRank) {
  std::vector<double> ascending;
  for (int i = 1; i <= 100; ++i) ascending.push_back(i);
  EXPECT_EQ(quantile_of_sorted(ascending, 0), 1);
  EXPECT_EQ(quantile_of_sorted(ascending, 0.5), 50);
  EXPECT_EQ(quantile_of_sorted(ascending, 0.501), 51);
  EXPECT_EQ(quantile_of_sorted(ascending, 0.99), 99);
  EXPECT_EQ(quantile_of_sorted(ascending, 1), 100);
  EXPECT_EQ(quantile({7}, 0), 7);
  EXPECT_EQ(quantile({7}, 1), 7);
  EXPECT_EQ(quantile({20, 10}, 0.5), 10);
}

TEST(RobustDeviation, IgnoresOneOutlierAndIsZeroOfNothing) {
  EXPECT_EQ(median_absolute_deviation(std::array{1.0, 2.0, 3.0, 4.0, 1000.0}), 1);
  EXPECT_NEAR(robust_deviation(std::array{1.0, 2.0, 3.0, 4.0, 1000.0}), 1.4826, 1e-4);
  EXPECT_EQ(robust_deviation({}), 0);
}

TEST(RobustDeviation, EstimatesTheDeviationOfNormalValues) {
  Draws draws(1);
  std::vector<double> values;
  for (int i = 0; i < 20'000; ++i) {  // Box and Muller
    values.push_back(5 +
                     3 * std::sqrt(draws.exponential(2)) * std::cos(2 * M_PI * draws.uniform()));
  }
  EXPECT_NEAR(robust_deviation(values), 3, 0.1);
}

TEST(StatisticsDeathTest, OfNoValuesAreABug) {
  EXPECT_DEATH(median({}), "at least one value");
  EXPECT_DEATH(quantile({}, 0.5), "at least one value");
  EXPECT_DEATH(quantile({1}, 1.5), "from 0 to 1");
}

RC_GTEST_PROP(Quantile, AgreesWithSortingHoweverItIsFound, ()) {
  const auto whole = *rc::gen::nonEmpty(rc::gen::arbitrary<std::vector<int>>());
  const std::vector<double> values(whole.begin(), whole.end());
  std::vector<double> ascending = values;
  std::sort(ascending.begin(), ascending.end());
  const std::array shares{*rc::gen::inRange(0, 500) / 1000.0, 0.5,
                          *rc::gen::inRange(500, 1001) / 1000.0};
  const std::vector<double> found = quantiles(values, shares);
  for (std::size_t i = 0; i < shares.size(); ++i) {
    RC_ASSERT(found[i] == quantile_of_sorted(ascending, shares[i]));
    RC_ASSERT(found[i] == quantile(values, shares[i]));
    const auto not_above = std::upper_bound(ascending.begin(), ascending.end(), found[i]);
    RC_ASSERT(static_cast<double>(not_above - ascending.begin()) >=
              shares[i] * static_cast<double>(ascending.size()));
  }
}

}  // namespace
}  // namespace assay::base
