// How far predictions of steps are off: intervals from what projects that no fit had seen were off
// by, wider where the work is unlike what was measured, and words for that.
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
  std::int64_t rows = 0;      // of the class itself
  std::int64_t projects = 0;  // that they are of
};

struct IntervalTable {
  std::array<ErrorInterval, kSoftwareClasses> by_class;

  [[nodiscard]] const ErrorInterval& of(SoftwareClass kind) const {
    return by_class[static_cast<std::size_t>(kind)];
  }
};

// With the constants that the project has: each row's error is that of constants which were fitted
// without its project.
const IntervalTable& shipped_intervals();

// Mean error on the frozen panel: projects that no fit, no choice of structure and no interval has
// seen (tests/data/plan/README.md), each weighing the same.
struct PanelError {
  double mean = 0;
  std::int64_t projects = 0;
};
PanelError panel_error(bool mixtures);

// Around predicted memory, likewise.
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

enum class SeenPrecision : std::uint8_t { kHalf, kFp8, kFp4 };
std::string_view to_text(SeenPrecision precision);
SeenPrecision precision_of(const Work& work);

// How many projects measured dense models, and mixtures, on cards of a generation in a precision.
inline constexpr std::size_t kGenerations = 6;
inline constexpr std::size_t kPrecisions = 3;
using SeenProjects = std::array<std::array<std::array<std::int64_t, kPrecisions>, kGenerations>, 2>;

struct Seen {
  RangeTable ranges;
  SeenProjects projects{};
};
const Seen& shipped_seen();

// What of the work no comparable row has, in words: "16,384 ranks; the largest comparable row has
// 3,072", "no mixture was measured on AMD in fp8: wide".
std::vector<std::string> extrapolations(const Work& work, const Seen& seen);

// The interval of the work's class, wider by what the work is unlike, and by what was assumed of
// it.
ErrorInterval interval_of(const Work& work, const IntervalTable& table, const Seen& seen,
                          bool assumed = false);

}  // namespace assay::plan
