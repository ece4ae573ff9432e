#include "plan/failures/risks.h"

#include <gtest/gtest.h>

namespace assay::plan {
namespace {

using base::Seconds;

RunOnMachines run_of_llama() {
  return {.work = Seconds(54 * 86'400.0),
          .step = Seconds(5),
          .nodes = 2048,
          .devices = 16'384,
          .state_bytes = 405e9 * 14};
}

// 419 times in 54 days: every 3.1 hours.
TEST(Risks, OfLlamasRunMatchThePublishedOnes) {
  const Resilience r = resilience_of(run_of_llama(), default_risks());
  EXPECT_NEAR(r.mtbf.count() / 3600, 3.09, 0.01);
  EXPECT_NEAR(r.checkpoint.count(), 2.77, 0.01);
  EXPECT_NEAR(r.restart.count(), 302.77, 0.01);
  EXPECT_EQ(r.interval, best_interval(r.checkpoint, r.mtbf));
  EXPECT_GT(useful_fraction(r), 0.85);
}

TEST(Risks, CheckpointsAreBetweenAStepAndTheWholeRun) {
  RunOnMachines run = run_of_llama();
  run.step = Seconds(3600);
  EXPECT_EQ(resilience_of(run, default_risks()).interval, run.step);
  run = {.work = Seconds(60), .step = Seconds(1), .nodes = 1, .devices = 1, .state_bytes = 1e9};
  EXPECT_EQ(resilience_of(run, default_risks()).interval, run.work);
}

// Whatever takes machines away, failure or market.
TEST(Risks, SpotMachinesAreSavedMoreOften) {
  const RunOnMachines run{
      .work = Seconds(1e6), .step = Seconds(1), .nodes = 1, .devices = 8, .state_bytes = 100e9};
  const base::Money price(1'000'000, {}, {});
  const SpotRun spot = spot_run_of(run, default_risks(), price, price, std::nullopt);
  EXPECT_LT(spot.market.interval, spot.resilience.interval);
  EXPECT_EQ(spot.market.available, Seconds(8 * 3600.0));
}

TEST(Risks, AreListedWithTheirSources) {
  for (const Assumption& a : listed(default_risks())) {
    EXPECT_FALSE(a.what.empty() || a.value.empty() || a.source.empty());
  }
}

}  // namespace
}  // namespace assay::plan
