#include "suite/goal.h"

#include <fmt/format.h>

#include "base/number.h"
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
  const auto bound = base::parse_number<double>(rest);
  if (!known || !bound) {
    return base::fail(base::usage_error("",
                                        fmt::format("'{}' is not a goal", base::printable(text)),
                                        "\"<= 1\", \">= 0.9\", \"|x| <= 0.1\" or \"within 15%\""));
  }
  goal.bound = *bound;
  return goal;
}

}  // namespace assay::suite
