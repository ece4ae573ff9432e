#include "plan/failures/segments.h"

#include <cmath>

namespace assay::plan {
namespace {

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

}  // namespace

Segments segments_of(const Resilience& r, base::Seconds work) {
  if (work.count() <= 0) return {};
  Segments t;
  t.count = std::ceil(work / r.interval);
  t.segment = (r.interval + r.checkpoint).count();
  t.last = work.count() - (t.count - 1) * r.interval.count() + r.checkpoint.count();
  t.undisturbed = work.count() + t.count * r.checkpoint.count();
  return t;
}

double mean_segment(const Resilience& r, double segment) {
  const double m = r.mtbf.count();
  return (m + r.outage.count()) * std::exp(r.restart.count() / m) * std::expm1(segment / m);
}

double mean_retried_segment(const Resilience& r, double segment) {
  const double m = r.mtbf.count();
  return (m + r.outage.count()) * std::expm1((r.restart.count() + segment) / m);
}

// A segment that is disturbed once goes on as a geometric number of failed attempts and one that
// lives.
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

}  // namespace assay::plan
