#include "suite/suite.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/number.h"
#include "base/suggestion.h"
#include "base/text.h"

namespace assay::suite {
namespace {

// Deeper nesting of settings is a cycle.
constexpr int kDeepestSetting = 8;
constexpr std::size_t kLongestText = 1 << 20;

class Filler {
 public:
  Filler(const Suite& suite, const SuiteCase& suite_case, bool quick)
      : case_(suite_case), settings_(suite_case.with) {
    if (quick) settings_.insert(suite.quick.begin(), suite.quick.end());
    settings_.insert(suite.settings.begin(), suite.settings.end());
  }

  base::Result<std::string> fill(std::string_view text, int depth) {
    std::string filled;
    while (true) {
      const std::size_t begin = text.find("@{");
      filled += text.substr(0, begin);
      filled_ += std::min(begin, text.size());
      if (begin == std::string_view::npos) return filled;
      const std::size_t end = text.find('}', begin);
      const std::string name(text.substr(begin + 2, end - begin - 2));
      const auto found = settings_.find(name);
      if (end == std::string_view::npos || found == settings_.end()) {
        return base::fail(unknown(name, end != std::string_view::npos));
      }
      if (filled_ > kLongestText) {
        return base::fail(base::usage_error(case_.origin.text(),
                                            fmt::format("case '{}' is too long with its settings "
                                                        "filled in",
                                                        case_.name)));
      }
      if (depth == kDeepestSetting) {
        return base::fail(base::usage_error(case_.origin.text(),
                                            fmt::format("the setting '{}' refers to itself", name),
                                            "settings may use each other, but not in a cycle"));
      }
      ASSAY_TRY(const std::string inside, fill(found->second, depth + 1));
      filled += inside;
      text.remove_prefix(end + 1);
    }
  }

 private:
  [[nodiscard]] base::Error unknown(const std::string& name, bool ends) const {
    std::vector<std::string> known;
    for (const auto& [key, value] : settings_) known.push_back(key);
    const std::string shown = base::shortened(base::printable(name), 40);
    return base::usage_error(
        case_.origin.text(),
        fmt::format("case '{}' uses '@{{{}{}", case_.name, shown,
                    ends ? "}', which is not a setting" : "', which has no closing brace"),
        ends ? base::suggestion(name, known) : "@{NAME}");
  }

  const SuiteCase& case_;
  Settings settings_;
  std::size_t filled_ = 0;  // bytes, at all depths
};

}  // namespace

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

std::string_view to_text(CaseKind kind) {
  switch (kind) {
    case CaseKind::kPlan:
      return "plan";
    case CaseKind::kRows:
      return "rows";
    case CaseKind::kCollective:
      return "collective";
    case CaseKind::kCompare:
      return "compare";
    case CaseKind::kCommand:
      break;
  }
  return "command";
}

bool measures(CaseKind kind) {
  return kind == CaseKind::kCompare || kind == CaseKind::kCommand;
}

const SuiteCase* Suite::find_case(std::string_view case_name) const {
  const auto found = std::find_if(cases.begin(), cases.end(), [&](const SuiteCase& suite_case) {
    return suite_case.name == case_name;
  });
  return found == cases.end() ? nullptr : &*found;
}

base::Result<std::string> filled_in(const Suite& suite, const SuiteCase& suite_case, bool quick) {
  return Filler(suite, suite_case, quick).fill(suite_case.text, 0);
}

}  // namespace assay::suite
