// Effect: the estimate of B against A from paired differences, with its intervals and checks, and
// the verdict against a margin. A difference is ln(B/A), one per block, in the order in which the
// blocks ran; output shows percent of A.
//
//   const Effect e = effect_of(differences);
//   verdict_of(e.estimate, {.margin_pct = 1});  // kPass: the whole interval is below 1 %
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compare/intervals.h"
#include "compare/series.h"

namespace assay::compare {

// ln(B/A) as percent of A.
double percent(double difference);
ConfidenceInterval percent(const ConfidenceInterval& differences);

// A ratio, inverted if below 1, with the word for its direction: "9.2 × faster", "1.020 × slower".
// No word if it rounds to 1; empty if it is not positive and finite.
std::string ratio_text(double ratio, std::string_view if_more, std::string_view if_less);

// How an interval was computed.
enum class Method {
  kNone,        // fewer than two differences: no interval
  kStudent,     // two to five: too few for a signed-rank interval
  kSignedRank,  // Hodges-Lehmann estimate, Wilcoxon interval
};
std::string_view to_text(Method method);

// Only the estimate and its interval: what the stopping rule needs after every block.
struct Estimate {
  std::int64_t pairs = 0;
  Method method = Method::kNone;
  double centre = 0;
  ConfidenceInterval interval;
  double autocorrelation = 0;
  double widening = 1;  // the factor by which autocorrelation widened the interval

  // In percent of A; infinite without an interval.
  [[nodiscard]] double half_width_pct() const;
  // The number of independent pairs that would give an interval of this width.
  [[nodiscard]] double effective_pairs() const;
};
Estimate estimate_of(std::span<const double> differences, double alpha = 0.05);

struct Signs {
  std::int64_t more = 0;  // B more than A
  std::int64_t less = 0;
  std::int64_t equal = 0;
  double p = 1;  // of a two-sided sign test
};

struct Effect {
  double alpha = 0.05;
  Estimate estimate;
  // In addition to the estimate:
  double mean = 0;
  double deviation = 0;
  std::optional<ConfidenceInterval> student;
  std::optional<ConfidenceInterval> bootstrap;
  Signs signs;
  Drift drift;
  std::vector<std::size_t> outliers;  // positions among the differences
};
Effect effect_of(std::span<const double> differences, double alpha = 0.05,
                 const Resampling& resampling = {});

// Pairs needed for an interval of this half-width, and for detecting an effect of this size with a
// power of 80 %, at the noise seen so far. Nothing without an interval.
std::optional<double> pairs_for_half_width(const Estimate& estimate, double half_width_pct);
std::optional<double> pairs_to_detect(const Estimate& estimate, double effect_pct, double alpha);

// The position of an interval relative to a bound; also used for the goals of suites.
enum class IntervalVerdict { kPass, kFail, kInconclusive, kNotJudged };
std::string_view to_text(IntervalVerdict verdict);  // "PASS"
// For an experiment that ended because an arm failed, or without a pair.
inline constexpr std::string_view kNoVerdict = "NO VERDICT";

struct Judgement {
  double margin_pct = 1;        // how much worse B may be
  bool more_is_better = false;  // for throughputs and the like
  bool judged = true;           // false: a scan without a margin, which only reports

  bool operator==(const Judgement&) const = default;
};
// PASS if the whole interval is within the margin, FAIL if all of it is beyond, else INCONCLUSIVE.
IntervalVerdict verdict_of(const Estimate& estimate, const Judgement& judgement);

}  // namespace assay::compare
