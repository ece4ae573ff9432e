// How far predictions of steps are off, and when nobody knows: intervals from what rows like the
// one predicted were off by, and sentences about what is outside of all such rows.
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
struct Interval {
  double low = 0;
  double high = std::numeric_limits<double>::infinity();
  std::int64_t rows = 0;  // of the class itself
};

struct IntervalTable {
  std::array<Interval, kSoftwareClasses> by_class;

  [[nodiscard]] const Interval& of(SoftwareClass kind) const {
    return by_class[static_cast<std::size_t>(kind)];
  }
};

// With the constants that the project has. The source (a framework on a machine, measured by
// someone) is known if rows of it were among those that the constants were fitted to; else the
// interval is what predictions were off by when the constants had not seen the rows' source.
const IntervalTable& shipped_intervals(bool known_source);
Interval interval_of(SoftwareClass kind, bool known_source);

// Around predicted memory: of the rows that say theirs, whatever ran them, which are few and all of
// one framework.
Interval memory_interval();

// What rows were about, by class.
struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = 0;
};

struct SeenRanges {
  Range parameters;
  Range ranks;
  Range sequence;
  Range card_flops;  // of a card in bf16, per second

  [[nodiscard]] bool any() const { return ranks.high > 0; }
};

using RangeTable = std::array<SeenRanges, kSoftwareClasses>;
const RangeTable& shipped_ranges();

// What of the work no comparable row has: "16,384 ranks; the largest comparable row has 3,072".
// Intervals say nothing about that.
std::vector<std::string> extrapolations(const Work& work, const RangeTable& ranges);
std::vector<std::string> extrapolations(const Work& work);

}  // namespace assay::plan
