// How long a run takes, with its spread: attempts are played, each as one draw of when it fails.
#include <algorithm>
#include <cmath>

#include "base/draws.h"
#include "plan/failures/failures.h"
#include "plan/failures/quantile.h"
#include "plan/failures/turns.h"

namespace assay::plan {
namespace {

using base::Seconds;

// With more failures than this in a run their sum is normal to better than the sampling error.
constexpr double kManyFailures = 300;
constexpr double kNormalP90 = 1.2815515655446004;

double played_run(const Resilience& r, Seconds work, base::Draws& draws) {
  const double turn = (r.interval + r.checkpoint).count();
  double left = work.count();
  double elapsed = 0;
  for (;;) {
    const double needed =
        r.restart.count() + left + std::ceil(left / r.interval.count()) * r.checkpoint.count();
    const double fails_after = draws.exponential(r.mtbf.count());
    if (fails_after >= needed) return elapsed + needed;
    const double saved = std::floor(std::max(0.0, fails_after - r.restart.count()) / turn);
    left -= saved * r.interval.count();
    elapsed += fails_after + r.outage.count();
  }
}

void spread_by_playing(const Resilience& r, Seconds work, const Sampling& sampling,
                       Completion& completion) {
  std::vector<double> times;
  times.reserve(static_cast<std::size_t>(sampling.trials));
  for (std::int64_t trial = 0; trial < sampling.trials; ++trial) {
    base::Draws draws(sampling.seed, static_cast<std::uint64_t>(trial));
    times.push_back(played_run(r, work, draws));
  }
  completion.p50 = Seconds(quantile(times, 0.5));
  completion.p90 = Seconds(quantile(times, 0.9));
}

void spread_by_limit(const Resilience& r, Seconds work, Completion& completion) {
  const Turns turns = turns_of(r, work);
  const double sigma = std::sqrt(turns.count * turn_variance(r, turns.turn));
  completion.p50 = completion.expected;
  completion.p90 = completion.expected + Seconds(kNormalP90 * sigma);
}

}  // namespace

base::Result<Completion> completion(const Resilience& r, Seconds work, const Sampling& sampling) {
  ASSAY_TRY_VOID(check(r));
  ASSAY_TRY_VOID(check(sampling));
  if (!std::isfinite(work.count()) || work.count() < 0) {
    return base::fail(base::usage_error("work", "not a duration"));
  }
  Completion c;
  c.expected = expected_time(r, work);
  c.failures = expected_failures(r, work);
  c.useful_fraction = work.count() == 0 ? 0 : work / c.expected;
  c.p50 = c.expected;
  c.p90 = c.expected;
  if (c.failures > kManyFailures) {
    spread_by_limit(r, work, c);
  } else if (c.failures > 0) {
    spread_by_playing(r, work, sampling, c);
  }
  return c;
}

base::Result<void> check(const Sampling& sampling) {
  constexpr std::int64_t kMostTrials = 1'000'000;
  if (sampling.trials >= 1 && sampling.trials <= kMostTrials) return {};
  return base::fail(base::usage_error("trials", "not between 1 and 1,000,000"));
}

}  // namespace assay::plan
