// Effect: what paired differences say about B against A. Differences are ln(B/A), one per block, in
// the order in which blocks ran; people get percent of A.
//
//   const Effect e = effect_of(differences);
//   verdict_of(e, {.margin_pct = 1});      // kPass: the interval is below 1 %
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "compare/bootstrap.h"
#include "compare/series.h"
#include "compare/signed_rank.h"

namespace assay::compare {

// ln(B/A) as percent of A.
double percent(double difference);
Interval percent(const Interval& differences);

// How an interval was made.
enum class Method {
  kNone,        // of fewer than two differences
  kStudent,     // of two to five: as many as the signed-rank test cannot decide with
  kSignedRank,  // Hodges and Lehmann's estimate, Wilcoxon's interval
};
std::string_view to_text(Method method);

// The estimate and its interval alone, as it is looked at after every block.
struct Estimate {
  std::int64_t pairs = 0;
  Method method = Method::kNone;
  double centre = 0;
  Interval interval;
  double autocorrelation = 0;
  double widening = 1;  // what autocorrelation made of the interval's width

  // In percent of A; infinite without an interval.
  [[nodiscard]] double half_width_pct() const;
  // As many independent pairs would say as much.
  [[nodiscard]] double effective_pairs() const;
};
Estimate estimate_of(std::span<const double> differences, double alpha = 0.05);

struct Signs {
  std::int64_t more = 0;  // B more than A
  std::int64_t less = 0;
  std::int64_t equal = 0;
  double p = 1;  // that a fair coin is so uneven
};

struct Effect {
  double alpha = 0.05;
  Estimate estimate;
  // Beside it:
  double mean = 0;
  double deviation = 0;
  std::optional<Interval> student;
  std::optional<Interval> bootstrap;
  Signs signs;
  Drift drift;
  std::vector<std::size_t> outliers;  // places among the differences
};
Effect effect_of(std::span<const double> differences, double alpha = 0.05,
                 const Resampling& resampling = {});

// Pairs for an interval of this half-width, and pairs with which an effect of this size would show
// in four experiments of five, at the noise that the estimate has. Nothing without an interval.
std::optional<double> pairs_for_half_width(const Estimate& estimate, double half_width_pct);
std::optional<double> pairs_to_detect(const Estimate& estimate, double effect_pct, double alpha);

enum class Verdict { kPass, kFail, kInconclusive };
std::string_view to_text(Verdict verdict);

struct Judgement {
  double margin_pct = 1;        // B may be worse by so much
  bool more_is_better = false;  // of throughputs and the like

  bool operator==(const Judgement&) const = default;
};
// By where the interval lies: all of it within the margin, all of it beyond, or neither.
Verdict verdict_of(const Estimate& estimate, const Judgement& judgement);

}  // namespace assay::compare
