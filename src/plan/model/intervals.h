// How far predictions of steps are off: intervals from the errors on comparable rows, and warnings
// about work that lies outside the range of all such rows.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "plan/model/software.h"
#include "plan/model/work.h"

namespace assay::plan {

inline constexpr std::size_t kSoftwareClasses = 4;

// Of 10 steps measured, 8 took between low and high times what was predicted. Without rows nothing
// is known.
struct ErrorInterval {
  double low = 0;
  double high = std::numeric_limits<double>::infinity();
  std::int64_t rows = 0;  // of the class itself
};

struct IntervalTable {
  std::array<ErrorInterval, kSoftwareClasses> by_class;

  [[nodiscard]] const ErrorInterval& of(SoftwareClass kind) const {
    return by_class[static_cast<std::size_t>(kind)];
  }
};

// With the constants that the project has. The source (a framework on a machine, measured by
// someone) is known if rows of it were among those that the constants were fitted to; else the
// interval comes from predictions with constants that were fitted without the rows' source.
const IntervalTable& shipped_intervals(bool known_source);

// Around predicted memory: from the rows that give theirs, which are few and all of one framework.
ErrorInterval memory_interval();

// What rows were about, by class.
struct SeenRange {
  double low = std::numeric_limits<double>::infinity();
  double high = 0;
};

struct SeenRanges {
  SeenRange parameters;
  SeenRange ranks;
  SeenRange sequence;
  SeenRange card_flops;  // of a card in bf16, per second

  [[nodiscard]] bool any() const { return ranks.high > 0; }
};

using RangeTable = std::array<SeenRanges, kSoftwareClasses>;
const RangeTable& shipped_ranges();

// What of the work no comparable row has: "16,384 ranks; the largest comparable row has 3,072".
// Intervals do not cover that.
std::vector<std::string> extrapolations(const Work& work, const RangeTable& ranges);

}  // namespace assay::plan
