// What is known in closed form. From a checkpoint on, a segment of s = interval + checkpoint is
// done when s seconds pass without a failure; a failure costs what has passed, the outage, and a
// restart before the next try. With exponential failures of mean M that takes on average
//   (M + outage) e^(restart/M) (e^(s/M) - 1).
#include "plan/failures/failures.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "base/random_draws.h"
#include "base/statistics.h"

namespace assay::plan {
namespace {

using base::Seconds;

// A run's work as segments, each an interval of work and a checkpoint.
struct Segments {
  double count = 0;        // the last one included
  double segment = 0;      // seconds of each but the last, checkpoint included
  double last = 0;         // seconds of the last
  double undisturbed = 0;  // seconds of all
};

// The time of a failure that came within `span`: mean and variance.
struct Truncated {
  double mean = 0;
  double variance = 0;
};

Truncated failure_within(double span, double mtbf) {
  const double x = span / mtbf;
  // Nearly uniform; the formulas below would lose all their digits.
  if (x < 1e-4) return {.mean = span / 2, .variance = span * span / 12};
  const double growth = std::expm1(x);
  return {.mean = mtbf - span / growth,
          .variance = mtbf * mtbf - span * span * (growth + 1) / (growth * growth)};
}

Segments segments_of(const Resilience& r, Seconds work) {
  if (work.count() <= 0) return {};
  Segments t;
  t.count = std::ceil(work / r.interval);
  t.segment = (r.interval + r.checkpoint).count();
  t.last = work.count() - (t.count - 1) * r.interval.count() + r.checkpoint.count();
  t.undisturbed = work.count() + t.count * r.checkpoint.count();
  return t;
}

// Mean seconds until a segment is done, repeated when failures interrupt it: from a checkpoint on.
double mean_segment(const Resilience& r, double segment) {
  const double m = r.mtbf.count();
  return (m + r.outage.count()) * std::exp(r.restart.count() / m) * std::expm1(segment / m);
}

// The same from the start of an attempt on.
double mean_retried_segment(const Resilience& r, double segment) {
  const double m = r.mtbf.count();
  return (m + r.outage.count()) * std::expm1((r.restart.count() + segment) / m);
}

// Variance of mean_segment(). After its first failure a segment takes a geometric number of failed
// attempts and one that succeeds.
double segment_variance(const Resilience& r, double segment) {
  const double m = r.mtbf.count();
  const double outage = r.outage.count();
  const double attempt = r.restart.count() + segment;
  const double lives = std::exp(-segment / m);
  const double attempt_lives = std::exp(-attempt / m);
  const Truncated first = failure_within(segment, m);
  const Truncated again = failure_within(attempt, m);

  const double retries = (1 - attempt_lives) / attempt_lives;
  const double retries_variance = retries / attempt_lives;
  const double lost = again.mean + outage;
  const double retried_mean = attempt + retries * lost;
  const double retried_variance = retries * again.variance + retries_variance * lost * lost;

  const double disturbed = first.mean + outage + retried_mean;
  const double second_moment =
      lives * segment * segment +
      (1 - lives) * (first.variance + retried_variance + disturbed * disturbed);
  const double mean = lives * segment + (1 - lives) * disturbed;
  return second_moment - mean * mean;
}

constexpr double kHopelessExponent = 18.4;  // e^-18.4 is 10^-8

bool is_duration(Seconds s) {
  return std::isfinite(s.count()) && s.count() >= 0;
}

base::Result<void> need_duration(const char* what, Seconds s) {
  if (is_duration(s)) return {};
  return base::fail(base::usage_error(what, fmt::format("{} s is not a duration", s.count())));
}

// With more failures than this in a run their sum is normal to better than the sampling error.
constexpr double kManyFailures = 300;
constexpr double kNormalP90 = 1.2815515655446004;

double simulated_run(const Resilience& r, Seconds work, base::Draws& draws) {
  const double segment = (r.interval + r.checkpoint).count();
  double left = work.count();
  double elapsed = 0;
  for (;;) {
    const double needed =
        r.restart.count() + left + std::ceil(left / r.interval.count()) * r.checkpoint.count();
    const double fails_after = draws.exponential(r.mtbf.count());
    if (fails_after >= needed) return elapsed + needed;
    const double saved = std::floor(std::max(0.0, fails_after - r.restart.count()) / segment);
    left -= saved * r.interval.count();
    elapsed += fails_after + r.outage.count();
  }
}

void spread_by_simulation(const Resilience& r, Seconds work, const Sampling& sampling,
                          Completion& completion) {
  std::vector<double> times;
  times.reserve(static_cast<std::size_t>(sampling.trials));
  for (std::int64_t trial = 0; trial < sampling.trials; ++trial) {
    base::Draws draws(sampling.seed, static_cast<std::uint64_t>(trial));
    times.push_back(simulated_run(r, work, draws));
  }
  completion.p50 = Seconds(base::quantile(times, 0.5));
  completion.p90 = Seconds(base::quantile(times, 0.9));
}

void spread_by_limit(const Resilience& r, Seconds work, Completion& completion) {
  const Segments segments = segments_of(r, work);
  const double sigma = std::sqrt(segments.count * segment_variance(r, segments.segment));
  completion.p50 = completion.expected;
  completion.p90 = completion.expected + Seconds(kNormalP90 * sigma);
}

}  // namespace

base::Result<void> check(const Resilience& r) {
  ASSAY_TRY_VOID(need_duration("checkpoint time", r.checkpoint));
  ASSAY_TRY_VOID(need_duration("restart time", r.restart));
  ASSAY_TRY_VOID(need_duration("outage", r.outage));
  if (!(r.mtbf.count() > 0)) {
    return base::fail(
        base::usage_error("mean time between failures",
                          fmt::format("{} s; it must be greater than 0", r.mtbf.count())));
  }
  if (!is_duration(r.interval) || r.interval.count() == 0) {
    return base::fail(base::usage_error(
        "checkpoint interval", fmt::format("{} s of work between checkpoints", r.interval.count()),
        "set it to at least one step"));
  }
  if ((r.restart + r.interval + r.checkpoint) / r.mtbf > kHopelessExponent) {
    return base::fail(base::usage_error(
        "checkpoint interval",
        fmt::format("with a failure every {}, no attempt reaches its first checkpoint",
                    base::to_text(r.mtbf)),
        "save more often, or use fewer machines"));
  }
  return {};
}

Seconds gang_mtbf(Seconds unit_mtbf, std::int64_t units) {
  return unit_mtbf / static_cast<double>(units);
}

Seconds unit_mtbf(std::int64_t units, Seconds observed, std::int64_t interruptions) {
  if (interruptions <= 0) return Seconds(std::numeric_limits<double>::infinity());
  return observed * (static_cast<double>(units) / static_cast<double>(interruptions));
}

Seconds either_mtbf(Seconds a, Seconds b) {
  return Seconds(1 / (1 / a.count() + 1 / b.count()));
}

// Where the useful fraction is flat: x = 1 - e^-(x + c), in units of the mtbf. The difference of
// both sides is convex and the solution below 1, so that Newton's steps come down to it.
Seconds best_interval(Seconds checkpoint, Seconds mtbf) {
  if (checkpoint.count() == 0) return Seconds(0);
  if (std::isinf(mtbf.count())) return mtbf;
  const double c = checkpoint / mtbf;
  double x = 1;
  for (int i = 0; i < 60; ++i) {
    const double value = x + std::expm1(-(x + c));
    const double slope = 1 - std::exp(-(x + c));
    const double next = x - value / slope;
    if (std::abs(next - x) <= 1e-15 * x) break;
    x = next;
  }
  return x * mtbf;
}

double useful_fraction(const Resilience& r) {
  const double segment = (r.interval + r.checkpoint).count();
  if (std::isinf(r.mtbf.count())) return r.interval.count() / segment;
  return r.interval.count() / mean_segment(r, segment);
}

Seconds expected_time(const Resilience& r, Seconds work) {
  const Segments segments = segments_of(r, work);
  if (segments.count == 0) return Seconds(0);
  if (std::isinf(r.mtbf.count())) return Seconds(r.restart.count() + segments.undisturbed);
  const double first = segments.count > 1 ? segments.segment : segments.last;
  // The first segment begins with a restart, as after a failure that cost nothing.
  double sum = mean_retried_segment(r, first);
  if (segments.count > 1)
    sum +=
        (segments.count - 2) * mean_segment(r, segments.segment) + mean_segment(r, segments.last);
  return Seconds(sum);
}

// Failures come at their rate while something runs; outages are when nothing does.
double expected_failures(const Resilience& r, Seconds work) {
  if (std::isinf(r.mtbf.count())) return 0;
  return expected_time(r, work) / (r.mtbf + r.outage);
}

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
    spread_by_simulation(r, work, sampling, c);
  }
  return c;
}

base::Result<void> check(const Sampling& sampling) {
  constexpr std::int64_t kMostTrials = 1'000'000;
  if (sampling.trials >= 1 && sampling.trials <= kMostTrials) return {};
  return base::fail(base::usage_error("trials", "must be between 1 and 1,000,000"));
}

}  // namespace assay::plan
