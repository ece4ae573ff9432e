// When an experiment has seen enough: when its interval is narrow, its time is over or its pairs
// are made. Never because of where the interval lies: who looks until they see an effect sees one
// in every third experiment that has none.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/units.h"
#include "compare/effect.h"

namespace assay::compare {

struct StopRule {
  double half_width_pct = 0.25;
  std::int64_t min_pairs = 20;  // before a narrow interval is believed
  std::int64_t max_pairs = 100'000;
  base::Seconds max_time = base::Seconds(600);

  bool operator==(const StopRule&) const = default;
};

enum class Stop { kNo, kNarrow, kTime, kPairs, kFailed };
inline constexpr std::array kEveryStop = {Stop::kNo, Stop::kNarrow, Stop::kTime, Stop::kPairs,
                                          Stop::kFailed};
// "the interval is narrow enough"
std::string_view to_text(Stop stop);

Stop stop_after(const StopRule& rule, const Estimate& estimate, base::Seconds elapsed);

// What the rest will take if noise and blocks stay as they are; nothing while that is not known.
std::optional<base::Seconds> time_left(const StopRule& rule, const Estimate& estimate,
                                       base::Seconds elapsed, base::Seconds per_block);

}  // namespace assay::compare
