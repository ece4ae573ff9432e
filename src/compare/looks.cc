#include "compare/looks.h"

#include <algorithm>

namespace assay::compare {
namespace {

// The sum of 1 / (2 k (k+1)) from the second look on is 1/4, however many there are.
double share_of_look(std::size_t number) {
  const auto k = static_cast<double>(number);
  return 1 / (2 * k * (k + 1));
}

// Time may be given anew: it alone does not say when an experiment ends that has gone on. What was
// changed before there was a pair is the plan.
bool ends_as_before(const RuleChange& change) {
  if (change.pairs == 0) return true;
  const StopRule& from = change.from.stop;
  const StopRule& to = change.to.stop;
  return from.half_width_pct == to.half_width_pct && from.min_pairs == to.min_pairs &&
         from.max_pairs == to.max_pairs;
}

bool is_planned(const Measured& measured, Stop stop) {
  if (measured.looks.empty()) return true;
  const auto planned = [](const Look& look) { return look.planned; };
  return (stop == Stop::kNarrow || stop == Stop::kPairs) &&
         std::all_of(measured.changes.begin(), measured.changes.end(), ends_as_before) &&
         std::none_of(measured.looks.begin(), measured.looks.end(), planned);
}

}  // namespace

Look look_at(const Measured& measured, Stop stop, std::int64_t pairs) {
  const std::int64_t run = measured.last_run();
  if (!measured.looks.empty()) {
    const Look& last = measured.looks.back();
    if (last.run == run && last.share > 0) return last;
  }
  Look look{.run = run, .pairs = pairs, .stop = stop};
  if (stop == Stop::kNo || stop == Stop::kFailed) return look;
  look.planned = is_planned(measured, stop);
  look.share = look.planned ? 1 : share_of_look(measured.looks.size() + 1);
  return look;
}

Verdict verdict_after(std::span<const double> differences, double alpha, double share,
                      const Judgement& judgement) {
  if (!(share > 0)) return Verdict::kInconclusive;
  const Estimate e = estimate_of(differences, alpha * share);
  // So far out only ranks can be trusted: Student's t would need to know the tails.
  if (share < 1 && e.method != Method::kSignedRank) return Verdict::kInconclusive;
  return verdict_of(e, judgement);
}

}  // namespace assay::compare
