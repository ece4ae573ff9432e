// Goals for a suite's figures, as written in the file.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace assay::suite {

enum class GoalKind {
  kAtMost,
  kAtLeast,
  kSizeAtMost,  // limits the absolute value
  kWithin,
};
struct Goal {
  GoalKind kind = GoalKind::kAtMost;
  double bound = 0;  // kWithin: percent of the published figure
  std::string text;  // as written: "<= 1"
};

// "<= 1", ">= 0.9", "|x| <= 0.1", "within 15%"
base::Result<Goal> parse_goal(std::string_view text);

}  // namespace assay::suite
