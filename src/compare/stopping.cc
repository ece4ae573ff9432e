#include "compare/stopping.h"

#include <algorithm>

namespace assay::compare {
namespace {

// The alpha share of analysis `number`, from 1. The sum of 1 / (2 k (k+1)) from k = 2 on is 1/4.
double share_of_analysis(std::size_t number) {
  const auto k = static_cast<double>(number);
  return 1 / (2 * k * (k + 1));
}

// Whether the planned end is still in effect: a new time limit does not change it, because time
// restarts with every session, nor does a change made before the first pair.
bool keeps_planned_end(const RuleChange& change) {
  if (change.pairs == 0) return true;
  const StopRule& from = change.from.stop;
  const StopRule& to = change.to.stop;
  return from.half_width_pct == to.half_width_pct && from.min_pairs == to.min_pairs &&
         from.max_pairs == to.max_pairs;
}

bool is_planned(const Measured& measured, StopReason stop) {
  if (measured.analyses.empty()) return true;
  const auto planned = [](const InterimAnalysis& analysis) { return analysis.planned; };
  return (stop == StopReason::kNarrow || stop == StopReason::kPairs) &&
         std::all_of(measured.changes.begin(), measured.changes.end(), keeps_planned_end) &&
         std::none_of(measured.analyses.begin(), measured.analyses.end(), planned);
}

}  // namespace

StopReason stop_after(const StopRule& rule, const Estimate& estimate, base::Seconds elapsed) {
  if (estimate.pairs >= rule.min_pairs && estimate.half_width_pct() <= rule.half_width_pct) {
    return StopReason::kNarrow;
  }
  if (estimate.pairs >= rule.max_pairs) return StopReason::kPairs;
  if (elapsed >= rule.max_time) return StopReason::kTime;
  return StopReason::kNo;
}

std::optional<base::Seconds> time_left(const StopRule& rule, const Estimate& estimate,
                                       base::Seconds elapsed, base::Seconds per_block) {
  const auto narrow = pairs_for_half_width(estimate, rule.half_width_pct);
  if (!narrow) return std::nullopt;
  const double pairs = std::min(std::max(*narrow, static_cast<double>(rule.min_pairs)),
                                static_cast<double>(rule.max_pairs));
  const double more = std::max(0.0, pairs - static_cast<double>(estimate.pairs));
  const double left = std::min(more * per_block.count(), (rule.max_time - elapsed).count());
  return base::Seconds(std::max(0.0, left));
}

InterimAnalysis interim_analysis(const Measured& measured, StopReason stop, std::int64_t pairs) {
  const std::int64_t run = measured.last_run();
  if (!measured.analyses.empty()) {
    const InterimAnalysis& last = measured.analyses.back();
    if (last.run == run && last.alpha_share > 0) return last;
  }
  InterimAnalysis analysis{.run = run, .pairs = pairs, .stop = stop};
  if (stop == StopReason::kNo || stop == StopReason::kFailed) return analysis;
  analysis.planned = is_planned(measured, stop);
  analysis.alpha_share = analysis.planned ? 1 : share_of_analysis(measured.analyses.size() + 1);
  return analysis;
}

IntervalVerdict verdict_spending(std::span<const double> differences, double alpha,
                                 double alpha_share, const Judgement& judgement) {
  if (!judgement.judged) return IntervalVerdict::kNotJudged;
  if (!(alpha_share > 0)) return IntervalVerdict::kInconclusive;
  const Estimate e = estimate_of(differences, alpha * alpha_share);
  // Student's t would depend on the shape of the far tails, which a few pairs do not show.
  if (alpha_share < 1 && e.method != Method::kSignedRank) return IntervalVerdict::kInconclusive;
  return verdict_of(e, judgement);
}

}  // namespace assay::compare
