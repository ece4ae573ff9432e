// Goals: what is to be reached, and whether it was.
#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "base/text.h"
#include "suite/outcome.h"
#include "suite/read_figures.h"

namespace assay::suite {

base::Result<Goal> parse_goal(std::string_view text) {
  Goal goal{.text = std::string(text)};
  std::string_view rest = base::trim(text);
  const auto begins = [&](std::string_view word, GoalKind kind) {
    if (!rest.starts_with(word)) return false;
    rest = base::trim(rest.substr(word.size()));
    goal.kind = kind;
    return true;
  };
  const bool known = begins("|x| <=", GoalKind::kSizeAtMost) || begins("<=", GoalKind::kAtMost) ||
                     begins(">=", GoalKind::kAtLeast) || begins("within", GoalKind::kWithin);
  if (goal.kind == GoalKind::kWithin && rest.ends_with('%')) {
    rest = base::trim(rest.substr(0, rest.size() - 1));
  }
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), goal.bound);
  if (!known || error != std::errc() || end != rest.data() + rest.size() ||
      !std::isfinite(goal.bound)) {
    return base::fail(base::usage_error("", fmt::format("'{}' is no goal", base::printable(text)),
                                        "\"<= 1\", \">= 0.9\", \"|x| <= 0.1\" or \"within 15%\""));
  }
  return goal;
}

std::string_view to_text(GoalVerdict verdict) {
  switch (verdict) {
    case GoalVerdict::kPass:
      return "PASS";
    case GoalVerdict::kFail:
      return "FAIL";
    case GoalVerdict::kInconclusive:
      return "INCONCLUSIVE";
    case GoalVerdict::kNotJudged:
      break;
  }
  return "NOT JUDGED";
}

GoalVerdict judge(const Goal& goal, const Ours& ours, std::optional<double> published) {
  if (!ours.value || !std::isfinite(*ours.value)) return GoalVerdict::kNotJudged;
  const auto verdict = [](bool all_within, bool all_beyond) {
    if (all_within) return GoalVerdict::kPass;
    return all_beyond ? GoalVerdict::kFail : GoalVerdict::kInconclusive;
  };
  if (ours.unsure && ours.label == Label::kMeasured) return GoalVerdict::kInconclusive;
  if (goal.kind == GoalKind::kWithin) {
    if (!published || *published == 0) return GoalVerdict::kNotJudged;
    // Of the figure itself: a plan's interval says how sure it is, not how good it was.
    const double off = std::abs(*ours.value / *published - 1) * 100;
    return verdict(off <= goal.bound, off > goal.bound);
  }
  const double low = ours.low.value_or(*ours.value);
  const double high = ours.high.value_or(*ours.value);
  if (goal.kind == GoalKind::kSizeAtMost) {
    return verdict(low >= -goal.bound && high <= goal.bound,
                   low > goal.bound || high < -goal.bound);
  }
  if (goal.kind == GoalKind::kAtMost) return verdict(high <= goal.bound, low > goal.bound);
  return verdict(low >= goal.bound, high < goal.bound);
}

}  // namespace assay::suite
