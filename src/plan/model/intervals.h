// Intervals around predicted steps, from the errors of projects that were left out of the fit,
// wider where the work differs from everything that was measured; and sentences that say so.
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

// Of 10 measured steps, 8 took between `low` and `high` times the prediction. The default, without
// any rows, excludes nothing.
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

// Those of the shipped constants. The errors behind them are of constants that were fitted without
// the project of the row.
const IntervalTable& shipped_intervals();

// Mean error on the frozen panel: projects that were never used for a fit, a choice of
// structure or an interval (tests/data/plan/README.md). Each has the same weight.
struct PanelError {
  double mean = 0;
  double coverage = 0;  // share of measured steps inside their intervals
  std::int64_t projects = 0;
};
PanelError panel_error(bool mixtures);

// Of predicted memory: what measured runs needed, as their allocator counted it, which decides
// whether a run fits.
ErrorInterval needed_memory_interval();
// What nvidia-smi shows: the allocator's cache as well, which grows to what the card has and is
// given back when memory runs short.
ErrorInterval shown_memory_interval();

// Both, for the constants in use. Where the rows that these were fitted to do not tell, they are
// those of the shipped constants all the same.
struct MemoryIntervals {
  ErrorInterval needed = needed_memory_interval();
  ErrorInterval shown = shown_memory_interval();
  bool needed_of_others = false;  // of the shipped constants, which are not in use
  bool shown_of_others = false;
};

// Ranges that the measured rows of a class cover.
struct SeenRange {
  double low = std::numeric_limits<double>::infinity();
  double high = 0;
};

struct SeenRanges {
  SeenRange parameters;
  SeenRange ranks;
  SeenRange sequence;
  SeenRange card_flops;     // of a card in bf16, per second
  SeenRange local_experts;  // of a rank; of dense models 1

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

// Which of these cases a framework was measured in: seen_case() is a bit of its number.
inline constexpr std::size_t kFrameworks = 15;
using SeenSoftware = std::array<std::uint64_t, kFrameworks>;
std::uint64_t seen_case(bool mixture, Generation generation, SeenPrecision precision);

// The most of a card's bf16 peak that measured steps reached as model flops; 0: none measured.
using SeenMfu = std::array<std::array<double, kPrecisions>, kGenerations>;

struct Seen {
  RangeTable ranges;
  SeenProjects projects{};
  SeenSoftware software{};
  SeenMfu most_mfu{};
};
const Seen& shipped_seen();

// Model flops utilisation of bf16's peak in a step of so many seconds, without the embedding
// (spec/parameters.h), of jobs and rows alike.
double mfu_of(const Work& work, double seconds);

// In which respects the work is outside of what was measured: "16,384 ranks; the largest comparable
// row has 3,072", "no mixture was measured on AMD in fp8: wide".
// `mfu`: of the prediction; 0: not known.
std::vector<std::string> extrapolations(const Work& work, const Seen& seen, double mfu = 0);

// The interval of the work's class, wider for each respect in which the work differs from what was
// measured, and if something about it was assumed. Where the prediction is more efficient than
// everything measured, its upper end is that of a step that is not.
ErrorInterval interval_of(const Work& work, const IntervalTable& table, const Seen& seen,
                          bool assumed = false, double mfu = 0);

}  // namespace assay::plan
