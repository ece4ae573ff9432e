#include "compare/modality.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <vector>

namespace assay::compare {
namespace {

using Random = std::mt19937_64;

std::vector<double> sample(Random& random, std::size_t count,
                           const std::function<double(Random&)>& draw) {
  std::vector<double> values(count);
  for (double& value : values) value = draw(random);
  return values;
}

double dip_of_unsorted(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return dip_of(values);
}

double uniform(Random& random) {
  return std::uniform_real_distribution<double>(0, 1)(random);
}
double normal(Random& random) {
  return std::normal_distribution<double>(0, 1)(random);
}

// Where the dip follows from its definition.
TEST(Dip, KnownValues) {
  for (const std::size_t n : {1U, 2U, 7U, 100U}) {
    std::vector<double> even(n);
    for (std::size_t i = 0; i < n; ++i) even[i] = static_cast<double>(i);
    EXPECT_NEAR(dip_of(even), 1 / (2 * static_cast<double>(n)), 1e-12) << n;
  }
  // Half of the probability at either of two points: every line between them misses by 1/4.
  EXPECT_NEAR(dip_of(std::vector<double>{0, 0, 0, 0, 1, 1, 1, 1}), 0.25, 1e-6);
  // The smaller group's half is missed.
  EXPECT_NEAR(dip_of(std::vector<double>{0, 0, 1, 1, 1, 1, 1, 1, 1, 1}), 0.1, 1e-6);
  EXPECT_NEAR(dip_of(std::vector<double>(9, 3.5)), 1.0 / 18, 1e-12) << "all equal";
}

RC_GTEST_PROP(Dip, DoesNotDependOnPlaceScaleAndDirection, (std::uint32_t seed)) {
  Random random(seed);
  std::vector<double> values =
      sample(random, 3 + seed % 60, [&](Random& r) { return std::floor(40 * normal(r)); });
  const double dip = dip_of_unsorted(values);
  const auto n = static_cast<double>(values.size());
  RC_ASSERT(dip >= 1 / (2 * n) - 1e-12 && dip <= 0.25 + 1e-12);
  for (double& value : values) value = 5 - 0.25 * value;
  RC_ASSERT(std::abs(dip_of_unsorted(values) - dip) < 1e-9);
}

TEST(Dip, LimitsAreThoseOfUniformSamples) {
  Random random(20);
  for (const std::size_t n : {8U, 16U, 35U, 90U, 300U}) {
    constexpr int kSamples = 3000;
    int beyond = 0;
    for (int i = 0; i < kSamples; ++i) {
      beyond += dip_of_unsorted(sample(random, n, uniform)) > dip_limit(n) ? 1 : 0;
    }
    // 1 %, and four standard deviations either way.
    EXPECT_GT(beyond, kSamples * 0.0027) << n;
    EXPECT_LT(beyond, kSamples * 0.0173) << n;
  }
}

// Whatever the shape of one mode: fewer than one false alarm in a hundred.
TEST(TwoGroups, FewFalseAlarms) {
  const std::vector<std::function<double(Random&)>> shapes = {
      uniform,
      normal,
      [](Random& r) { return std::exponential_distribution<double>(1)(r); },
      [](Random& r) { return std::student_t_distribution<double>(2)(r); },
      [](Random& r) { return std::lognormal_distribution<double>(0, 1)(r); },
      [](Random& r) { return normal(r) + (uniform(r) < 0.05 ? 20 : 0); },  // rare slow runs
      [](Random& r) { return uniform(r) + uniform(r); },
  };
  Random random(21);
  for (std::size_t shape = 0; shape < shapes.size(); ++shape) {
    int alarms = 0;
    constexpr int kSamples = 1000;
    for (int i = 0; i < kSamples; ++i) {
      const std::size_t n = 8 + static_cast<std::size_t>(i) % 93;
      alarms += two_groups(sample(random, n, shapes[shape]), 0) ? 1 : 0;
    }
    EXPECT_LE(alarms, shape == 0 ? 22 : 10) << "shape " << shape;
  }
}

TEST(TwoGroups, AreFoundAndDescribed) {
  Random random(22);
  const auto draw = [](Random& r) {
    return (uniform(r) < 0.5 ? std::log(0.75) : std::log(0.4)) + 0.03 * normal(r);
  };
  for (const auto& [n, least] : {std::pair{12U, 0.7}, {20U, 0.93}, {40U, 0.99}}) {
    int found = 0;
    for (int i = 0; i < 500; ++i) {
      const auto groups = two_groups(sample(random, n, draw), 0.01);
      if (!groups) continue;
      ++found;
      EXPECT_NEAR(std::exp(groups->low), 0.4, 0.03);
      EXPECT_NEAR(std::exp(groups->high), 0.75, 0.05);
      EXPECT_EQ(groups->low_count + groups->high_count, n);
    }
    EXPECT_GE(found, 500 * least) << n;
  }
}

TEST(TwoGroups, StepsOfAClockAreNone) {
  std::vector<double> values;
  for (int i = 0; i < 40; ++i) values.push_back(i % 2 == 0 ? 0.001 : 0.002);
  EXPECT_FALSE(two_groups(values, 0.01));
  EXPECT_TRUE(two_groups(values, 0.0001));
  EXPECT_FALSE(two_groups(std::vector<double>{0, 0, 0, 1, 1, 1}, 0.01)) << "too few";
}

}  // namespace
}  // namespace assay::compare
