#include "compare/stopping.h"

#include <algorithm>

namespace assay::compare {

std::string_view to_text(Stop stop) {
  switch (stop) {
    case Stop::kNo:
      return "it was interrupted";
    case Stop::kNarrow:
      return "the interval is narrow enough";
    case Stop::kTime:
      return "the time was over";
    case Stop::kPairs:
      return "all pairs were made";
    case Stop::kFailed:
      return "an arm failed";
  }
  return "";
}

Stop stop_after(const StopRule& rule, const Estimate& estimate, base::Seconds elapsed) {
  if (estimate.pairs >= rule.min_pairs && estimate.half_width_pct() <= rule.half_width_pct) {
    return Stop::kNarrow;
  }
  if (estimate.pairs >= rule.max_pairs) return Stop::kPairs;
  if (elapsed >= rule.max_time) return Stop::kTime;
  return Stop::kNo;
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

}  // namespace assay::compare
