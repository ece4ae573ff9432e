#include "plan/failures/spot.h"
#include "base/statistics.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "plan/failures/spot_simulation.h"

namespace assay::plan {
namespace {

using base::Money;
using base::Seconds;

constexpr double kMostAttempts = 1e5;  // in one run; more would take minutes to simulate

base::Result<void> check_spot_durations(const SpotRun& run) {
  const SpotMarket& m = run.market;
  for (const auto& [what, value] :
       {std::pair{"work", run.work},
        std::pair{"time until spot machines are preempted", m.available},
        std::pair{"deadline", run.deadline.value_or(Seconds(1))}}) {
    if (!std::isfinite(value.count()) || value.count() <= 0) {
      return base::fail(base::usage_error(what, "must be a duration greater than 0"));
    }
  }
  for (const auto& [what, value] :
       {std::pair{"time until spot machines are available again", m.gone},
        std::pair{"warning before preemption", m.notice}}) {
    if (!std::isfinite(value.count()) || value.count() < 0) {
      return base::fail(base::usage_error(what, "not a duration"));
    }
  }
  return {};
}

// Whether its simulation ends.
base::Result<void> check_spot_attempts(const SpotRun& run, SpotPolicy policy) {
  if (policy == SpotPolicy::kOnDemand) return {};
  Resilience spot = run.resilience;
  spot.mtbf = either_mtbf(spot.mtbf, run.market.available);
  spot.interval = run.market.interval;
  ASSAY_TRY_VOID(check(spot));
  const double segment = run.market.available.count() + run.market.gone.count();
  const double attempts = policy == SpotPolicy::kSpot ? expected_failures(spot, run.work)
                                                      : run.deadline->count() / segment;
  if (attempts <= kMostAttempts) return {};
  return base::fail(base::usage_error("spot market",
                                      "machines are preempted too often for any progress",
                                      "save more often, or rent on demand"));
}

base::Result<void> check_spot(const SpotRun& run, SpotPolicy policy) {
  if (policy == SpotPolicy::kUniformProgress && !run.deadline) {
    return base::fail(
        base::usage_error("deadline", "not set, but this policy measures progress against it"));
  }
  if (run.market.on_demand_per_hour.currency() != run.market.spot_per_hour.currency()) {
    return base::fail(base::usage_error("spot market", "its prices are in two currencies"));
  }
  ASSAY_TRY_VOID(check(run.resilience));
  if (expected_failures(run.resilience, run.work) > kMostAttempts) {
    return base::fail(base::usage_error("mean time between failures", "too short for this run"));
  }
  ASSAY_TRY_VOID(check_spot_durations(run));
  return check_spot_attempts(run, policy);
}

// Of an hour's price; both prices' older date.
base::Result<Money> money_of(const SpotMarket& market, double micros) {
  constexpr double kMost = 9e18;
  if (!(micros < kMost)) return base::fail(base::usage_error("cost", "too large to count"));
  const Money& a = market.on_demand_per_hour;
  const Money& b = market.spot_per_hour;
  return Money(std::llround(micros), a.currency(), std::min(a.as_of(), b.as_of()));
}

}  // namespace

base::Result<SpotOutcome> spot_outcome(const SpotRun& run, SpotPolicy policy,
                                       const Sampling& sampling) {
  ASSAY_TRY_VOID(check(sampling));
  ASSAY_TRY_VOID(check_spot(run, policy));
  constexpr double kHour = 3600;
  const double spot_price = static_cast<double>(run.market.spot_per_hour.micros()) / kHour;
  const double full_price = static_cast<double>(run.market.on_demand_per_hour.micros()) / kHour;

  std::vector<double> times;
  std::vector<double> costs;
  double late = 0;
  double preemptions = 0;
  for (std::int64_t trial = 0; trial < sampling.trials; ++trial) {
    const SimulatedRun p =
        simulate(run, policy, {sampling.seed, static_cast<std::uint64_t>(trial)});
    times.push_back(p.seconds);
    costs.push_back(p.spot_seconds * spot_price + p.on_demand_seconds * full_price);
    preemptions += p.preemptions;
    if (run.deadline && p.seconds > run.deadline->count()) late += 1;
  }

  const auto trials = static_cast<double>(sampling.trials);
  SpotOutcome o;
  ASSAY_TRY(o.cost_p50, money_of(run.market, base::quantile(costs, 0.5)));
  ASSAY_TRY(o.cost_p90, money_of(run.market, base::quantile(costs, 0.9)));
  o.time_p50 = Seconds(base::quantile(times, 0.5));
  o.time_p90 = Seconds(base::quantile(times, 0.9));
  o.preemptions = preemptions / trials;
  o.miss_chance = late / trials;
  return o;
}

}  // namespace assay::plan
