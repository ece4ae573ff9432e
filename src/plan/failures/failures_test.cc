// Failures against published figures, against runs that the test simulates second by event with a
// generator of its own, and against what must always hold.
#include "plan/failures/failures.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <random>

namespace assay::plan {
namespace {

using base::Seconds;

constexpr double kFailuresHour = 3600;
constexpr double kFailuresDay = 24 * kFailuresHour;

// Plays a run the long way: one draw per segment, which the exponential's lack of memory allows.
double played_by_turns(const Resilience& r, double work, std::mt19937_64& random) {
  std::exponential_distribution<double> failure(1 / r.mtbf.count());
  double elapsed = 0;
  double done = 0;
  bool starting = true;
  while (done < work) {
    const double useful = std::min(r.interval.count(), work - done);
    const double needed = (starting ? r.restart.count() : 0) + useful + r.checkpoint.count();
    const double fails = failure(random);
    if (fails >= needed) {
      elapsed += needed;
      done += useful;
      starting = false;
    } else {
      elapsed += fails + r.outage.count();
      starting = true;
    }
  }
  return elapsed;
}

std::vector<double> played_runs(const Resilience& r, double work, int runs) {
  std::mt19937_64 random(20'240'731);
  std::vector<double> times;
  for (int i = 0; i < runs; ++i) times.push_back(played_by_turns(r, work, random));
  std::sort(times.begin(), times.end());
  return times;
}

double mean_time(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += v;
  return sum / static_cast<double>(values.size());
}

Resilience resilience_of(double mtbf_h, double checkpoint_s, double restart_s, double interval_s,
                         double outage_s = 0) {
  return {.mtbf = Seconds(mtbf_h * kFailuresHour),
          .checkpoint = Seconds(checkpoint_s),
          .restart = Seconds(restart_s),
          .outage = Seconds(outage_s),
          .interval = Seconds(interval_s)};
}

// Llama Team, "The Llama 3 Herd of Models" (2024), section 3.3.4: 419 unexpected interruptions in
// 54 days on 16,384 GPUs, and more than 90 % of the time effective.
TEST(Failures, LlamasInterruptions) {
  const Seconds gpu = unit_mtbf(16'384, Seconds(54 * kFailuresDay), 419);
  EXPECT_NEAR(gpu.count() / kFailuresHour, 50'677, 1);
  const Seconds gang = gang_mtbf(gpu, 16'384);
  EXPECT_NEAR(gang.count() / kFailuresHour, 3.093, 0.001);

  Resilience r{.mtbf = gang, .checkpoint = Seconds(5), .restart = Seconds(600)};
  r.interval = best_interval(r.checkpoint, r.mtbf);
  EXPECT_GT(useful_fraction(r), 0.90);
  EXPECT_LT(useful_fraction(r), 0.95);
  const auto done = completion(r, Seconds(54 * kFailuresDay * useful_fraction(r)));
  ASSERT_TRUE(done.has_value());
  EXPECT_NEAR(done->failures, 419, 2);
  EXPECT_NEAR(done->expected.count() / kFailuresDay, 54, 0.1);
}

TEST(Failures, ThePartThatIsUsefulIsWhatAPlayedRunKeeps) {
  for (const Resilience& r : {resilience_of(3, 60, 300, 1200), resilience_of(1, 10, 600, 3600),
                              resilience_of(10, 300, 60, 900), resilience_of(2, 0, 120, 60),
                              resilience_of(2, 30, 0, 600, 1800)}) {
    std::mt19937_64 random(7);
    const double work = 40'000 * r.interval.count();
    const double fraction = work / played_by_turns(r, work, random);
    EXPECT_NEAR(useful_fraction(r), fraction, 0.01 * fraction);
  }
}

TEST(Failures, MeanMedianAndP90AreThoseOfPlayedRuns) {
  // No failure in most runs; a few; many, by the central limit.
  const struct {
    Resilience r;
    double work_h;
    double tolerance;
  } cases[] = {{resilience_of(100, 60, 300, 3600), 20, 0.01},
               {resilience_of(4, 60, 300, 1500), 48.3, 0.01},
               {resilience_of(4, 60, 300, 1500, 900), 10, 0.02},
               {resilience_of(0.5, 20, 60, 300), 150, 0.005}};
  for (const auto& [r, work_h, tolerance] : cases) {
    const double work = work_h * kFailuresHour;
    const auto c = completion(r, Seconds(work), {.seed = 3, .trials = 20'000});
    ASSERT_TRUE(c.has_value());
    const std::vector<double> simulated = played_runs(r, work, 4000);
    EXPECT_NEAR(c->expected.count(), mean_time(simulated), tolerance * work) << work_h;
    EXPECT_NEAR(c->p50.count(), simulated[2000], tolerance * work) << work_h;
    EXPECT_NEAR(c->p90.count(), simulated[3600], 2 * tolerance * work) << work_h;
    EXPECT_NEAR(c->useful_fraction, work / c->expected.count(), 1e-12);
  }
}

// On both sides of where playing stops the spread is the same.
TEST(Failures, TheLimitGoesOnWherePlayingStops) {
  const Resilience r = resilience_of(1, 30, 120, 600, 60);
  const double per_hour = expected_failures(r, Seconds(1000 * kFailuresHour)) / 1000;
  const auto spread = [&](double failures) {
    const double work = failures / per_hour * kFailuresHour;
    const auto c = completion(r, Seconds(work), {.trials = 20'000});
    return (c->p90 - c->expected).count() / std::sqrt(work);
  };
  EXPECT_NEAR(spread(290), spread(310), 0.05 * spread(310));
}

TEST(Failures, WithoutFailuresThereIsNothingToChance) {
  Resilience r = resilience_of(1, 10, 100, 1000);
  r.mtbf = Seconds(std::numeric_limits<double>::infinity());
  const auto c = completion(r, Seconds(2500));
  ASSERT_TRUE(c.has_value());
  EXPECT_EQ(c->expected, Seconds(100 + 2500 + 3 * 10));
  EXPECT_EQ(c->p90, c->expected);
  EXPECT_EQ(c->failures, 0);
  EXPECT_DOUBLE_EQ(useful_fraction(r), 1000 / 1010.0);
}

TEST(Failures, ASeedRepeats) {
  const Resilience r = resilience_of(4, 60, 300, 1500);
  const auto p90 = [&](std::uint64_t seed) {
    return completion(r, Seconds(48 * kFailuresHour), {.seed = seed})->p90.count();
  };
  EXPECT_EQ(p90(1), p90(1));
  EXPECT_NE(p90(1), p90(2));
  EXPECT_NEAR(p90(1), p90(2), 0.02 * p90(1));
}

TEST(Failures, WhatMakesNoSenseIsRefused) {
  const auto refused = [](const Resilience& r) { return !check(r).has_value(); };
  EXPECT_FALSE(refused(resilience_of(1, 10, 100, 1000)));
  EXPECT_TRUE(refused(resilience_of(0, 10, 100, 1000)));
  EXPECT_TRUE(refused(resilience_of(-1, 10, 100, 1000)));
  EXPECT_TRUE(refused(resilience_of(std::nan(""), 10, 100, 1000)));
  EXPECT_TRUE(refused(resilience_of(1, -10, 100, 1000)));
  EXPECT_TRUE(refused(resilience_of(1, 10, std::numeric_limits<double>::infinity(), 1000)));
  EXPECT_TRUE(refused(resilience_of(1, 10, 100, 0)));
  EXPECT_TRUE(refused(resilience_of(1, 10, 100, 1e6)));
  EXPECT_FALSE(completion(resilience_of(1, 10, 100, 1000), Seconds(-1)).has_value());
  EXPECT_FALSE(completion(resilience_of(1, 10, 100, 1000), Seconds(1), {.trials = 0}).has_value());
}

Resilience any_resilience() {
  return resilience_of(*rc::gen::inRange(1, 1000) / 4.0, *rc::gen::inRange(0, 600),
                       *rc::gen::inRange(0, 900), *rc::gen::inRange(1, 7200),
                       *rc::gen::inRange(0, 3600));
}

RC_GTEST_PROP(FailuresProperty, TroubleNeverHelps, ()) {
  const Resilience r = any_resilience();
  RC_PRE(check(r).has_value());
  const double fraction = useful_fraction(r);
  RC_ASSERT(fraction > 0 && fraction <= 1);
  const auto not_better = [&](Resilience worse) { return useful_fraction(worse) <= fraction; };
  const Seconds more(*rc::gen::inRange(1, 100));
  Resilience worse = r;
  worse.checkpoint += more;
  RC_ASSERT(not_better(worse));
  worse = r;
  worse.restart += more;
  RC_ASSERT(not_better(worse));
  worse = r;
  worse.outage += more;
  RC_ASSERT(not_better(worse));
  worse = r;
  worse.mtbf = 0.9 * worse.mtbf;
  RC_ASSERT(not_better(worse));
}

RC_GTEST_PROP(FailuresProperty, NoIntervalIsBetterThanTheBest, ()) {
  Resilience r = any_resilience();
  r.checkpoint += Seconds(1);
  const Resilience other = r;
  r.interval = best_interval(r.checkpoint, r.mtbf);
  RC_ASSERT(useful_fraction(other) <= useful_fraction(r) * (1 + 1e-12));
  // Young's is nearly as good where checkpoints are quick.
  Resilience young = r;
  young.interval = Seconds(std::sqrt(2 * r.checkpoint.count() * r.mtbf.count()));
  const double slow = r.checkpoint / r.mtbf;
  RC_ASSERT(useful_fraction(young) >= useful_fraction(r) * (1 - slow));
}

}  // namespace
}  // namespace assay::plan
