#include "suite/goal.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "base/text.h"

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
    return base::fail(base::usage_error("",
                                        fmt::format("'{}' is not a goal", base::printable(text)),
                                        "\"<= 1\", \">= 0.9\", \"|x| <= 0.1\" or \"within 15%\""));
  }
  return goal;
}

}  // namespace assay::suite
