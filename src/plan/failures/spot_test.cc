// Spot machines: closed forms where there are any, and what a deadline must do.
#include "plan/failures/spot.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "plan/failures/spot_simulation.h"

namespace assay::plan {
namespace {

using base::Money;
using base::Seconds;

constexpr double kSpotHour = 3600;
constexpr base::Date kSpotDate{2026, 8, 0};

Money spot_dollars(std::int64_t amount, base::Date date = kSpotDate) {
  return {amount * 1'000'000, base::Currency{}, date};
}

SpotRun forty_hours(double available_h, double gone_h) {
  const double infinite = std::numeric_limits<double>::infinity();
  return {.work = Seconds(40 * kSpotHour),
          .deadline = Seconds(60 * kSpotHour),
          .resilience = {.mtbf = Seconds(infinite),
                         .checkpoint = Seconds(30),
                         .restart = Seconds(300),
                         .interval = Seconds(1800)},
          .market = {.on_demand_per_hour = spot_dollars(30),
                     .spot_per_hour = spot_dollars(10),
                     .available = Seconds(available_h * kSpotHour),
                     .gone = Seconds(gone_h * kSpotHour),
                     .interval = Seconds(1800)}};
}

SpotOutcome spot_of(const SpotRun& run, SpotPolicy policy, Sampling sampling = {}) {
  const auto o = spot_outcome(run, policy, sampling);
  EXPECT_TRUE(o.has_value()) << o.error().line();
  return *o;
}

// Of the simulated runs that an outcome is made of.
struct SpotMeans {
  double seconds = 0;
  double cost = 0;
  double spot_share = 0;  // of the hours that are paid for
};

SpotMeans means_of(const SpotRun& run, SpotPolicy policy, Sampling sampling = {}) {
  SimulatedRun sum;
  for (std::int64_t trial = 0; trial < sampling.trials; ++trial) {
    const SimulatedRun one =
        simulate(run, policy, {sampling.seed, static_cast<std::uint64_t>(trial)});
    sum.seconds += one.seconds;
    sum.spot_seconds += one.spot_seconds;
    sum.on_demand_seconds += one.on_demand_seconds;
  }
  const auto trials = static_cast<double>(sampling.trials);
  const double cost = sum.spot_seconds * run.market.spot_per_hour.units() +
                      sum.on_demand_seconds * run.market.on_demand_per_hour.units();
  return {.seconds = sum.seconds / trials,
          .cost = cost / kSpotHour / trials,
          .spot_share = sum.spot_seconds / (sum.spot_seconds + sum.on_demand_seconds)};
}

TEST(Spot, OnDemandIsTheWorkAndItsCheckpoints) {
  const SpotRun run = forty_hours(4, 1);
  const SpotOutcome o = spot_of(run, SpotPolicy::kOnDemand);
  const double hours = (40 * kSpotHour + 80 * 30 + 300) / kSpotHour;
  EXPECT_NEAR(o.time_p50.count(), hours * kSpotHour, 1e-6);
  EXPECT_NEAR(o.time_p90.count(), hours * kSpotHour, 1e-6);
  EXPECT_NEAR(o.cost_p90.units(), 30 * hours, 1e-5);
  EXPECT_EQ(means_of(run, SpotPolicy::kOnDemand).spot_share, 0);
  EXPECT_EQ(o.miss_chance, 0);
}

TEST(Spot, OnDemandWithFailuresIsCompletion) {
  SpotRun run = forty_hours(4, 1);
  run.resilience.mtbf = Seconds(5 * kSpotHour);
  run.resilience.outage = Seconds(600);
  const SpotOutcome o = spot_of(run, SpotPolicy::kOnDemand, {.trials = 20'000});
  const auto c = completion(run.resilience, run.work, {.seed = 9, .trials = 20'000});
  const double mean = means_of(run, SpotPolicy::kOnDemand, {.trials = 20'000}).seconds;
  EXPECT_NEAR(mean, c->expected.count(), 0.005 * c->expected.count());
  EXPECT_NEAR(o.time_p90.count(), c->p90.count(), 0.01 * c->p90.count());
}

// A run that only waits is one whose failures are preemptions and whose outages are waiting, after
// a first wait; and what it pays for is the same without the waiting.
TEST(Spot, OnlySpotIsTheClosedForm) {
  const SpotRun run = forty_hours(4, 1);
  const SpotOutcome o = spot_of(run, SpotPolicy::kSpot, {.trials = 40'000});
  Resilience market = run.resilience;
  market.mtbf = run.market.available;
  const double paid = expected_time(market, run.work).count();
  market.outage = run.market.gone;
  const double time = expected_time(market, run.work).count() + 0.2 * 1 * kSpotHour;
  const SpotMeans means = means_of(run, SpotPolicy::kSpot, {.trials = 40'000});
  EXPECT_NEAR(means.seconds, time, 0.004 * time);
  EXPECT_NEAR(means.cost, 10 * paid / kSpotHour, 0.004 * 10 * paid / kSpotHour);
  EXPECT_NEAR(o.preemptions, expected_failures(market, run.work), 0.1);
  EXPECT_EQ(means.spot_share, 1);
}

TEST(Spot, ANoticeSavesWhatWouldBeLost) {
  SpotRun run = forty_hours(2, 0.5);
  const double without = means_of(run, SpotPolicy::kSpot).seconds;
  const double preemptions = spot_of(run, SpotPolicy::kSpot).preemptions;
  run.market.notice = Seconds(10);  // too short for a checkpoint
  EXPECT_EQ(means_of(run, SpotPolicy::kSpot).seconds, without);
  run.market.notice = Seconds(120);
  // Half a segment per preemption, roughly.
  EXPECT_NEAR((without - means_of(run, SpotPolicy::kSpot).seconds) / preemptions, 900, 450);
}

TEST(Spot, UniformProgressKeepsTheDeadlineAndMostOfTheSavings) {
  for (const auto& [available, gone] :
       {std::pair{4.0, 1.0}, std::pair{2.0, 2.0}, std::pair{1.0, 5.0}, std::pair{8.0, 24.0}}) {
    const SpotRun run = forty_hours(available, gone);
    const double full = means_of(run, SpotPolicy::kOnDemand).cost;
    const double spot = means_of(run, SpotPolicy::kSpot).cost;
    const double cost = means_of(run, SpotPolicy::kUniformProgress).cost;
    const SpotOutcome mixed = spot_of(run, SpotPolicy::kUniformProgress);
    EXPECT_EQ(mixed.miss_chance, 0) << available;  // nothing but the market fails here
    EXPECT_LE(mixed.time_p90.count(), 60 * kSpotHour);
    EXPECT_LT(cost, full) << available;
    EXPECT_GE(cost, spot * 0.9) << available;
    EXPECT_LE(mixed.cost_p50.units(), mixed.cost_p90.units());
  }
  EXPECT_GT(spot_of(forty_hours(2, 2), SpotPolicy::kSpot).miss_chance, 0.9);
}

// Also where more frequent checkpoints on spot machines eat into what is to spare.
RC_GTEST_PROP(SpotProperty, UniformProgressNeverMissesADeadlineThatOnDemandKeeps, ()) {
  SpotRun run = forty_hours(*rc::gen::inRange(5, 100) / 10.0, *rc::gen::inRange(0, 100) / 10.0);
  run.resilience.checkpoint = Seconds(*rc::gen::inRange(1, 300));
  run.resilience.interval = Seconds(*rc::gen::inRange(600, 7200));
  run.market.interval = Seconds(*rc::gen::inRange(300, 3600));
  const double needed = spot_of(run, SpotPolicy::kOnDemand, {.trials = 1}).time_p50.count();
  run.deadline = Seconds(needed * (1 + *rc::gen::inRange(0, 100) / 100.0) + 1);
  const auto o = spot_outcome(run, SpotPolicy::kUniformProgress, {.trials = 50});
  RC_ASSERT(o.has_value());
  RC_ASSERT(o->miss_chance == 0);
}

TEST(Spot, WithoutSpotMachinesOnDemandKeepsTheDeadline) {
  const SpotRun run = forty_hours(0.5, 10'000);
  const SpotOutcome o = spot_of(run, SpotPolicy::kUniformProgress);
  EXPECT_EQ(o.miss_chance, 0);
  EXPECT_LT(means_of(run, SpotPolicy::kUniformProgress).spot_share, 0.01);
  EXPECT_NEAR(o.cost_p50.units(), spot_of(run, SpotPolicy::kOnDemand).cost_p50.units(), 60);
}

TEST(Spot, ADeadlineThatCannotBeKeptIsMissed) {
  SpotRun run = forty_hours(4, 1);
  run.deadline = Seconds(39 * kSpotHour);
  EXPECT_EQ(spot_of(run, SpotPolicy::kUniformProgress).miss_chance, 1);
  run.deadline = Seconds(41 * kSpotHour);
  run.resilience.mtbf = Seconds(20 * kSpotHour);
  const double chance = spot_of(run, SpotPolicy::kOnDemand).miss_chance;
  EXPECT_GT(chance, 0.2);
  EXPECT_LT(chance, 0.9);
}

TEST(Spot, ACostIsAsOldAsItsOldestPrice) {
  SpotRun run = forty_hours(4, 1);
  run.market.spot_per_hour = spot_dollars(10, {2025, 1, 0});
  EXPECT_EQ(spot_of(run, SpotPolicy::kSpot).cost_p50.as_of(), (base::Date{2025, 1, 0}));
}

TEST(Spot, WhatMakesNoSenseIsRefused) {
  const auto refused = [](const SpotRun& run, SpotPolicy policy = SpotPolicy::kUniformProgress) {
    return !spot_outcome(run, policy).has_value();
  };
  SpotRun run = forty_hours(4, 1);
  run.deadline.reset();
  EXPECT_TRUE(refused(run));
  EXPECT_FALSE(refused(run, SpotPolicy::kSpot));
  run = forty_hours(4, 1);
  run.market.spot_per_hour = Money(1, base::Currency{{'E', 'U', 'R'}}, kSpotDate);
  EXPECT_TRUE(refused(run));
  EXPECT_TRUE(refused(forty_hours(0, 1)));
  EXPECT_TRUE(refused(forty_hours(4, -1)));
  EXPECT_TRUE(refused(forty_hours(0.01, 1), SpotPolicy::kSpot));
  run = forty_hours(4, 1);
  run.work = Seconds(std::nan(""));
  EXPECT_TRUE(refused(run));
}

// Whatever the market does, nothing is done sooner than it can be, or for less than spot's price.
RC_GTEST_PROP(SpotProperty, OutcomesAreWithinTheirBounds, ()) {
  SpotRun run = forty_hours(*rc::gen::inRange(5, 200) / 10.0, *rc::gen::inRange(0, 200) / 10.0);
  run.deadline = Seconds(*rc::gen::inRange(41, 200) * kSpotHour);
  run.market.notice = Seconds(*rc::gen::element(0, 120));
  if (*rc::gen::arbitrary<bool>())
    run.resilience.mtbf = Seconds(*rc::gen::inRange(5, 100) * kSpotHour);
  const auto policy =
      *rc::gen::element(SpotPolicy::kOnDemand, SpotPolicy::kSpot, SpotPolicy::kUniformProgress);
  const auto o = spot_outcome(run, policy, {.trials = 20});
  RC_ASSERT(o.has_value());
  RC_ASSERT(o->time_p50.count() >= 40 * kSpotHour && o->time_p50 <= o->time_p90);
  RC_ASSERT(o->cost_p50.units() >= 400 && o->cost_p50.micros() <= o->cost_p90.micros());
  const double share = means_of(run, policy, {.trials = 20}).spot_share;
  RC_ASSERT(share >= 0 && share <= 1);
}

}  // namespace
}  // namespace assay::plan
