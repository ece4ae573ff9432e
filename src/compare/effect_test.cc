// Estimates, intervals and checks against numbers that scipy computed (testing/make_vectors.py).
#include "compare/effect.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "compare/distributions.h"
#include "compare/testing/vectors.h"

namespace assay::compare {
namespace {

TEST(Effect, MatchesScipy) {
  for (const testing::Vector& v : testing::kVectors) {
    const Effect e = effect_of(v.values, 0.05, {.samples = 50'000});
    SCOPED_TRACE(v.name);
    ASSERT_EQ(e.estimate.method, Method::kSignedRank);
    EXPECT_NEAR(e.estimate.centre, v.hodges_lehmann, 1e-12);
    // Removes the widening for autocorrelation; beyond 100 differences the depth comes from the
    // normal approximation, which may be one rank further in or out.
    const auto unwidened = [&](double end) {
      return e.estimate.centre + (end - e.estimate.centre) / e.estimate.widening;
    };
    const double tolerance = v.values.size() > 100 ? 2e-5 : 1e-12;
    EXPECT_NEAR(unwidened(e.estimate.interval.low), v.low, tolerance);
    EXPECT_NEAR(unwidened(e.estimate.interval.high), v.high, tolerance);
    EXPECT_NEAR(e.mean, v.mean, 1e-14);
    EXPECT_NEAR(e.deviation, v.deviation, 1e-14);
    EXPECT_NEAR(e.student->low, v.t_low, 1e-12);
    EXPECT_NEAR(e.student->high, v.t_high, 1e-12);
    // Two resamplings estimate the same quantile; means of rounded values lie on a lattice, so they
    // may differ by one lattice point.
    const double lattice = std::string_view(v.name) == "ties" ? 0.01 / 30 + 1e-12 : 0;
    const double noise = std::max(lattice, 0.03 * (v.t_high - v.t_low));
    EXPECT_NEAR(e.bootstrap->low, v.bootstrap_low, noise);
    EXPECT_NEAR(e.bootstrap->high, v.bootstrap_high, noise);
    EXPECT_NEAR(e.signs.p, v.sign_p, 1e-10);
    const double z = v.spearman * std::sqrt(static_cast<double>(v.values.size() - 1));
    EXPECT_NEAR(e.drift.p, 2 * normal_cdf(-std::abs(z)), 1e-9);
  }
}

TEST(Distributions, QuantilesAreScipys) {
  for (const testing::Quantile& q : testing::kQuantiles) {
    const double value = q.freedom == 0 ? normal_quantile(q.p) : student_quantile(q.p, q.freedom);
    EXPECT_NEAR(value, q.value, 1e-9 * std::abs(q.value)) << q.freedom << ' ' << q.p;
  }
}

TEST(Distributions, CoinsAreCounted) {
  EXPECT_NEAR(fair_coin_cdf(2, 4), 11 / 16.0, 1e-12);
  EXPECT_NEAR(fair_coin_cdf(0, 10), 1 / 1024.0, 1e-15);
  EXPECT_EQ(fair_coin_cdf(-1, 10), 0);
  EXPECT_NEAR(fair_coin_cdf(10, 10), 1, 1e-12);
}

TEST(Effect, OfNothingAndOfFew) {
  EXPECT_EQ(estimate_of({}).method, Method::kNone);
  EXPECT_EQ(verdict_of(estimate_of({}), {}), IntervalVerdict::kInconclusive);
  const std::vector<double> one = {0.01};
  EXPECT_EQ(estimate_of(one).method, Method::kNone);
  EXPECT_TRUE(std::isinf(estimate_of(one).half_width_pct()));
  EXPECT_FALSE(pairs_to_detect(estimate_of(one), 0.1, 0.05));
  const std::vector<double> three = {0.01, 0.02, 0.03};
  const Estimate e = estimate_of(three);
  EXPECT_EQ(e.method, Method::kStudent);
  EXPECT_NEAR(e.interval.half_width(), 4.302652729696142 * 0.01 / std::sqrt(3.0), 1e-12);
}

TEST(Effect, VerdictsFollowWhereTheIntervalLies) {
  const auto verdict = [](double low, double high, double margin, bool more_is_better = false) {
    const Estimate e{.pairs = 20,
                     .method = Method::kSignedRank,
                     .interval = {std::log1p(low / 100), std::log1p(high / 100)}};
    return verdict_of(e, {margin, more_is_better});
  };
  EXPECT_EQ(verdict(-0.5, 0.9, 1), IntervalVerdict::kPass);
  EXPECT_EQ(verdict(1.1, 1.5, 1), IntervalVerdict::kFail);
  EXPECT_EQ(verdict(0.9, 1.1, 1), IntervalVerdict::kInconclusive);
  EXPECT_EQ(verdict(-50, 1, 1), IntervalVerdict::kInconclusive);  // not below
  EXPECT_EQ(verdict(-0.9, 5, 1, true), IntervalVerdict::kPass);
  EXPECT_EQ(verdict(-3, -1.5, 1, true), IntervalVerdict::kFail);
  EXPECT_EQ(verdict(-3, 2, 1, true), IntervalVerdict::kInconclusive);
}

// The method's own figures: at a deviation of 1 %, a 1 % effect needs 8 to 11 pairs, and a
// half-width of 0.25 % about 62.
TEST(Effect, PowerMatchesTheFormulas) {
  const double half = 1.96 * 0.01 / std::sqrt(30.0);
  const Estimate e{.pairs = 30, .method = Method::kSignedRank, .interval = {-half, half}};
  EXPECT_NEAR(*pairs_to_detect(e, 1, 0.05), 8, 1);
  EXPECT_NEAR(*pairs_for_half_width(e, 0.25), 62, 1);
}

TEST(Effect, OutliersAreNamedAndStay) {
  std::vector<double> values;
  for (int i = 0; i < 30; ++i) values.push_back(0.001 * (i % 7));
  values[11] = 0.5;
  const Effect e = effect_of(values);
  EXPECT_EQ(e.outliers, std::vector<std::size_t>{11});
  EXPECT_EQ(e.estimate.pairs, 30);
  EXPECT_GT(e.mean, 0.015);
  EXPECT_LT(e.estimate.centre, 0.004);
}

TEST(Effect, DriftIsSeen) {
  std::vector<double> values;
  for (int i = 0; i < 40; ++i) values.push_back(0.001 * i + 0.002 * (i * 7 % 5));
  const Drift drift = drift_of(values);
  EXPECT_LT(drift.p, 1e-6);
  EXPECT_NEAR(drift.change, 0.02, 0.002);
}

TEST(Effect, WarmUpIsWholeBlocksAtTheBeginning) {
  std::vector<double> levels;
  for (int i = 0; i < 40; ++i) levels.push_back(0.01 * (i * 7 % 5));
  EXPECT_EQ(warm_up_count(levels), 0U);
  levels[20] = 3;  // not at the beginning
  EXPECT_EQ(warm_up_count(levels), 0U);
  levels[0] = 2;
  levels[1] = 1;
  EXPECT_EQ(warm_up_count(levels), 2U);
  levels.resize(7);
  EXPECT_EQ(warm_up_count(levels), 0U);
}

RC_GTEST_PROP(EffectProperty, TurningTheArmsRoundTurnsTheEffect, ()) {
  const auto raw = *rc::gen::container<std::vector<int>>(rc::gen::inRange(-1000, 1000));
  RC_PRE(raw.size() >= 2U);
  std::vector<double> values;
  std::vector<double> turned;
  for (const int v : raw) {
    values.push_back(v / 1e5);
    turned.push_back(-v / 1e5);
  }
  const Estimate a = estimate_of(values);
  const Estimate b = estimate_of(turned);
  RC_ASSERT(std::abs(a.centre + b.centre) < 1e-12);
  RC_ASSERT(std::abs(a.interval.low + b.interval.high) < 1e-12);
  RC_ASSERT(a.widening >= 1);
  RC_ASSERT(a.interval.low <= a.centre && a.centre <= a.interval.high);
}

}  // namespace
}  // namespace assay::compare
