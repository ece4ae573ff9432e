#include "suite/suite.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/suggestion.h"
#include "base/text.h"

namespace assay::suite {
namespace {

// Settings that use settings that use settings …: deeper is a circle.
constexpr int kDeepestSetting = 8;
constexpr std::size_t kLongestText = 1 << 20;

class Filler {
 public:
  Filler(const Suite& suite, const Step& step, bool quick) : step_(step), settings_(step.with) {
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
        return base::fail(base::usage_error(step_.origin.text(),
                                            fmt::format("step '{}' is too long with its settings "
                                                        "filled in",
                                                        step_.name)));
      }
      if (depth == kDeepestSetting) {
        return base::fail(base::usage_error(
            step_.origin.text(), fmt::format("the setting '{}' goes round in circles", name),
            "a setting may use others, not itself"));
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
        step_.origin.text(),
        fmt::format("step '{}' uses '@{{{}{}", step_.name, shown,
                    ends ? "}', which is no setting" : "', which does not end"),
        ends ? base::suggestion(name, known) : "@{NAME}");
  }

  const Step& step_;
  Settings settings_;
  std::size_t filled_ = 0;  // bytes, at all depths
};

}  // namespace

std::string_view to_text(StepKind kind) {
  switch (kind) {
    case StepKind::kPlan:
      return "plan";
    case StepKind::kRows:
      return "rows";
    case StepKind::kCollective:
      return "collective";
    case StepKind::kCompare:
      return "compare";
    case StepKind::kCommand:
      break;
  }
  return "command";
}

bool measures(StepKind kind) {
  return kind == StepKind::kCompare || kind == StepKind::kCommand;
}

const Step* Suite::step(std::string_view step_name) const {
  const auto found = std::find_if(steps.begin(), steps.end(),
                                  [&](const Step& step) { return step.name == step_name; });
  return found == steps.end() ? nullptr : &*found;
}

base::Result<std::string> filled_in(const Suite& suite, const Step& step, bool quick) {
  return Filler(suite, step, quick).fill(step.text, 0);
}

}  // namespace assay::suite
