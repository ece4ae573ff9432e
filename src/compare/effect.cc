#include "compare/effect.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/units.h"
#include "compare/distributions.h"

namespace assay::compare {
namespace {

constexpr double kPower = 0.8;

struct Moments {
  double mean = 0;
  double deviation = 0;  // of one value
};

Moments moments_of(std::span<const double> values) {
  if (values.empty()) return {};
  const auto n = static_cast<double>(values.size());
  Moments m{.mean = std::accumulate(values.begin(), values.end(), 0.0) / n};
  double squares = 0;
  for (const double value : values) squares += (value - m.mean) * (value - m.mean);
  if (values.size() > 1) m.deviation = std::sqrt(squares / (n - 1));
  return m;
}

std::optional<ConfidenceInterval> student_interval(const Moments& m, std::size_t count,
                                                   double alpha) {
  if (count < 2) return std::nullopt;
  const auto n = static_cast<double>(count);
  const double half = student_quantile(1 - alpha / 2, n - 1) * m.deviation / std::sqrt(n);
  return ConfidenceInterval{m.mean - half, m.mean + half};
}

Signs signs_of(std::span<const double> differences) {
  Signs signs;
  for (const double d : differences) {
    (d > 0 ? signs.more : d < 0 ? signs.less : signs.equal) += 1;
  }
  signs.p =
      std::min(1.0, 2 * fair_coin_cdf(std::min(signs.more, signs.less), signs.more + signs.less));
  return signs;
}

// The standard deviation of one difference that this half-width implies.
double pair_deviation_pct(const Estimate& estimate, double z) {
  return estimate.half_width_pct() * std::sqrt(static_cast<double>(estimate.pairs)) / z;
}

double at_least_two(double pairs) {
  return std::max(2.0, std::ceil(pairs));
}

}  // namespace

double percent(double difference) {
  return 100 * std::expm1(difference);
}

ConfidenceInterval percent(const ConfidenceInterval& differences) {
  return {percent(differences.low), percent(differences.high)};
}

std::string ratio_text(double ratio, std::string_view if_more, std::string_view if_less) {
  if (!std::isfinite(ratio) || ratio <= 0) return {};
  const double times = ratio >= 1 ? ratio : 1 / ratio;
  if (times < 1.0005) return "1.000 ×";
  const std::string_view word = ratio >= 1 ? if_more : if_less;
  if (times >= 99.5 && times < 1e15) {
    return fmt::format("{} × {}", base::grouped(std::llround(times)), word);
  }
  int digits = 1;
  if (times < 2) digits = times < 1.1 ? 3 : 2;
  return fmt::format("{:.{}f} × {}", times, digits, word);
}

std::string_view to_text(Method method) {
  switch (method) {
    case Method::kNone:
      return "none";
    case Method::kStudent:
      return "student-t";
    case Method::kSignedRank:
      return "hodges-lehmann-signed-rank";
  }
  return "";
}

std::string_view to_text(IntervalVerdict verdict) {
  switch (verdict) {
    case IntervalVerdict::kPass:
      return "PASS";
    case IntervalVerdict::kFail:
      return "FAIL";
    case IntervalVerdict::kInconclusive:
      return "INCONCLUSIVE";
    case IntervalVerdict::kNotJudged:
      return "NOT JUDGED";
  }
  return "";
}

double Estimate::half_width_pct() const {
  if (method == Method::kNone) return std::numeric_limits<double>::infinity();
  return percent(interval).half_width();
}

double Estimate::effective_pairs() const {
  return static_cast<double>(pairs) / (widening * widening);
}

Estimate estimate_of(std::span<const double> differences, double alpha) {
  Estimate e{.pairs = static_cast<std::int64_t>(differences.size())};
  if (differences.empty()) return e;
  std::vector<double> sorted(differences.begin(), differences.end());
  std::sort(sorted.begin(), sorted.end());
  if (const auto interval = signed_rank_interval(sorted, alpha)) {
    e.method = Method::kSignedRank;
    e.centre = hodges_lehmann(sorted);
    e.interval = *interval;
  } else {
    const Moments m = moments_of(differences);
    e.centre = m.mean;
    if (const auto student = student_interval(m, differences.size(), alpha)) {
      e.method = Method::kStudent;
      e.interval = *student;
    }
  }
  e.autocorrelation = rank_autocorrelation(differences);
  e.widening = widening(e.autocorrelation, differences.size(), alpha);
  e.interval.low = e.centre - e.widening * (e.centre - e.interval.low);
  e.interval.high = e.centre + e.widening * (e.interval.high - e.centre);
  return e;
}

Effect effect_of(std::span<const double> differences, double alpha, const Resampling& resampling) {
  const Moments m = moments_of(differences);
  return {.alpha = alpha,
          .estimate = estimate_of(differences, alpha),
          .mean = m.mean,
          .deviation = m.deviation,
          .student = student_interval(m, differences.size(), alpha),
          .bootstrap = bootstrap_mean_interval(differences, alpha, resampling),
          .signs = signs_of(differences),
          .drift = drift_of(differences),
          .outliers = outliers(differences)};
}

std::optional<double> pairs_for_half_width(const Estimate& estimate, double half_width_pct) {
  if (estimate.method == Method::kNone) return std::nullopt;
  const double ratio = estimate.half_width_pct() / half_width_pct;
  return at_least_two(static_cast<double>(estimate.pairs) * ratio * ratio);
}

std::optional<double> pairs_to_detect(const Estimate& estimate, double effect_pct, double alpha) {
  if (estimate.method == Method::kNone) return std::nullopt;
  const double z = normal_quantile(1 - alpha / 2);
  const double needed = (z + normal_quantile(kPower)) * pair_deviation_pct(estimate, z);
  return at_least_two(needed * needed / (effect_pct * effect_pct));
}

IntervalVerdict verdict_of(const Estimate& estimate, const Judgement& judgement) {
  if (!judgement.judged) return IntervalVerdict::kNotJudged;
  if (estimate.method == Method::kNone) return IntervalVerdict::kInconclusive;
  const ConfidenceInterval p = percent(estimate.interval);
  // How much worse B is.
  const ConfidenceInterval worse =
      judgement.more_is_better ? ConfidenceInterval{-p.high, -p.low} : p;
  if (worse.high < judgement.margin_pct) return IntervalVerdict::kPass;
  if (worse.low > judgement.margin_pct) return IntervalVerdict::kFail;
  return IntervalVerdict::kInconclusive;
}

}  // namespace assay::compare
