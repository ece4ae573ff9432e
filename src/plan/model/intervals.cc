// The tables are computed by plan/calibrate from the measured rows in tests/data/plan; a test there
// compares them.
#include "plan/model/intervals.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "base/units.h"

namespace assay::plan {
namespace {

// In the order of SoftwareClass.
constexpr IntervalTable kShippedIntervals = {{{
    {0.840, 1.372, 1331, 8},
    {0.857, 1.426, 314, 10},
    {0.795, 1.218, 521, 16},
    {0.741, 2.320, 347, 14},
}}};

constexpr Seen kShippedSeen = {
    {{
        {{2.034e+08, 1.008e+12}, {2, 1.229e+04}, {1024, 2048}, {3.12e+14, 3.12e+14}, {1, 1}},
        {{1.241e+08, 7.055e+10}, {1, 1024}, {512, 6.554e+04}, {3.12e+14, 9.89e+14}, {1, 1}},
        {{1.245e+08, 4.62e+11}, {1, 1.638e+04}, {1024, 5.243e+05}, {4.7e+13, 2.5e+15}, {1, 1}},
        {{6.9e+09, 1.04e+12}, {8, 2048}, {4096, 6.554e+04}, {3.12e+14, 2.5e+15}, {1, 128}},
    }},
    {{
        {{{0, 0, 0}, {16, 0, 0}, {15, 9, 0}, {1, 4, 2}, {1, 1, 0}, {1, 2, 0}}},
        {{{0, 0, 0}, {1, 0, 0}, {8, 5, 0}, {5, 5, 1}, {0, 0, 0}, {1, 0, 0}}},
    }},
    // By framework: seen_case().
    {{0x0, 0xc0, 0x48, 0xc8, 0x3b010ec0, 0x1000040, 0x8, 0x21b2180c8, 0x8, 0x200008, 0x1000040,
      0x1000048, 0x48, 0x80000c0, 0x30c0}},
    {{{0.000, 0.000, 0.000},
      {0.684, 0.000, 0.000},
      {0.646, 0.978, 0.000},
      {0.484, 1.101, 1.512},
      {0.894, 1.256, 0.000},
      {0.432, 0.728, 0.000}}},
};

// By which the logarithms of an interval's ends grow for each thing that is unlike what was
// measured.
constexpr double kNoProject = 1.5;
constexpr double kOneProject = 1.2;
constexpr double kBeyondRange = 1.25;
// The errors behind intervals are of projects that were left out, most of which were alone with
// their software: little is to be added for software that no row is of.
constexpr double kNoSoftware = 1.2;
constexpr double kOtherCase = 1.1;
constexpr double kAssumed = 1.1;

// Ranges are rounded: a hundredth more is not outside.
constexpr double kSlack = 0.01;

std::string count_text(double value) {
  return base::grouped(std::llround(value));
}

std::string short_text(double value) {
  return base::short_count(std::llround(value));
}

std::string rate_text(double value) {
  return base::to_text(base::FlopsPerSecond(value));
}

std::string percent_text(double share) {
  return fmt::format("{:.0f} %", 100 * share);
}

struct Compared {
  double value = 0;
  SeenRange seen;
  std::string_view unit;
  std::string (*text)(double) = nullptr;
};

void add_if_outside(const Compared& compared, std::vector<std::string>& sentences) {
  const auto& [value, seen, unit, text] = compared;
  if (value >= seen.low * (1 - kSlack) && value <= seen.high * (1 + kSlack)) return;
  const bool above = value > seen.high;
  sentences.push_back(fmt::format("{} {}; the {} comparable row has {}", text(value), unit,
                                  above ? "largest" : "smallest",
                                  text(above ? seen.high : seen.low)));
}

double local_experts(const Work& work) {
  return std::max(1.0, work.shape.experts / work.degrees.ep);
}

// What was measured of the framework: nothing, something, or cases like this one.
enum class Measured : std::uint8_t { kNothing, kOtherCases, kThisCase };

Measured measured_of(const Work& work, const Seen& seen) {
  std::uint64_t cases = seen.software[static_cast<std::size_t>(work.software.framework)];
  // Our trainer's own runs are no rows of these tables (bench/results/train.md, moe.md).
  if (work.software.framework == Framework::kAssay) {
    for (const bool mixture : {false, true})
      for (const SeenPrecision precision : {SeenPrecision::kHalf, SeenPrecision::kFp8})
        cases |= seen_case(mixture, Generation::kHopper, precision);
  }
  if (cases == 0) return Measured::kNothing;
  const std::uint64_t own =
      seen_case(work.shape.is_moe(), work.card.generation, precision_of(work));
  return (cases & own) != 0 ? Measured::kThisCase : Measured::kOtherCases;
}

// The most that was measured on such a card, if the prediction is above it; else 0. Rows do not
// have our trainer's own runs, the most efficient on Hopper in bf16 (bench/results/train.md).
double exceeded_mfu(const Work& work, const Seen& seen, double mfu) {
  constexpr double kOwnOnHopper = 0.673;
  double most = seen.most_mfu[static_cast<std::size_t>(work.card.generation)]
                             [static_cast<std::size_t>(precision_of(work))];
  const bool own = work.card.generation == Generation::kHopper &&
                   precision_of(work) == SeenPrecision::kHalf && most > 0;
  if (own) most = std::max(most, kOwnOnHopper);
  return most > 0 && mfu > most * (1 + kSlack) ? most : 0;
}

std::int64_t projects_like(const Work& work, const Seen& seen) {
  const auto generation = static_cast<std::size_t>(work.card.generation);
  return seen.projects[work.shape.is_moe() ? 1 : 0][generation]
                      [static_cast<std::size_t>(precision_of(work))];
}

std::vector<std::string> beyond_ranges(const Work& work, const RangeTable& ranges) {
  const SoftwareClass kind = work.software.kind(work.shape.is_moe());
  const SeenRanges& seen = ranges[static_cast<std::size_t>(kind)];
  if (!seen.any()) return {fmt::format("no comparable row: none is {}", to_text(kind))};
  std::vector<std::string> sentences;
  const Compared all[] = {
      {work.shape.parameters, seen.parameters, "parameters", short_text},
      {work.degrees.ranks, seen.ranks, work.degrees.ranks == 1 ? "rank" : "ranks", count_text},
      {work.batch.sequence, seen.sequence, "tokens in a sequence", count_text},
      {work.card.bf16_flops.count(), seen.card_flops, "of a card", rate_text},
  };
  for (const Compared& compared : all) add_if_outside(compared, sentences);
  if (work.shape.is_moe()) {
    add_if_outside({local_experts(work), seen.local_experts, "experts on a rank", count_text},
                   sentences);
  }
  return sentences;
}

}  // namespace

const IntervalTable& shipped_intervals() {
  return kShippedIntervals;
}

PanelError panel_error(bool mixtures) {
  return mixtures ? PanelError{0.359, 0.67, 3} : PanelError{0.228, 0.77, 22};
}

ErrorInterval needed_memory_interval() {
  return {0.785, 1.281, 45, 2};
}

ErrorInterval shown_memory_interval() {
  return {0.980, 1.507, 29, 3};
}

const Seen& shipped_seen() {
  return kShippedSeen;
}

std::string_view to_text(SeenPrecision precision) {
  constexpr std::array<std::string_view, kPrecisions> kPrecisionNames = {"bf16", "fp8", "fp4"};
  return kPrecisionNames[static_cast<std::size_t>(precision)];
}

SeenPrecision precision_of(const Work& work) {
  if (work.fp4) return SeenPrecision::kFp4;
  return work.fp8 ? SeenPrecision::kFp8 : SeenPrecision::kHalf;
}

std::uint64_t seen_case(bool mixture, Generation generation, SeenPrecision precision) {
  const std::size_t bit =
      ((mixture ? kGenerations : 0) + static_cast<std::size_t>(generation)) * kPrecisions +
      static_cast<std::size_t>(precision);
  return std::uint64_t{1} << bit;
}

double mfu_of(const Work& work, double seconds) {
  const Shape& s = work.shape;
  const Degrees& d = work.degrees;
  const double idle = s.is_moe() ? s.moe_layers * s.mlp_matrices * s.expert_width() * s.expert_ffn *
                                       (s.experts - s.experts_per_token)
                                 : 0;
  const double flops_per_token = 6 * (s.body_parameters - idle + s.vocab * s.dim) +
                                 12 * s.layers * s.heads * s.head_dim * work.batch.sequence;
  const double tokens =
      work.batch.sequence * work.batch.micro_batch * work.batch.micros / (d.tp * d.pp * d.cp);
  return flops_per_token * tokens / (work.card.bf16_flops.count() * seconds);
}

std::vector<std::string> extrapolations(const Work& work, const Seen& seen, double mfu) {
  std::vector<std::string> sentences = beyond_ranges(work, seen.ranges);
  const std::int64_t projects = projects_like(work, seen);
  if (projects <= 1) {
    const std::string case_text =
        fmt::format("{} was measured on {} in {}", work.shape.is_moe() ? "mixture" : "dense model",
                    to_text(work.card.generation), to_text(precision_of(work)));
    sentences.push_back(projects == 0 ? fmt::format("no {}: wide", case_text)
                                      : fmt::format("a {} by one project only: wider", case_text));
  }
  const std::string_view framework = to_text(work.software.framework);
  switch (measured_of(work, seen)) {
    case Measured::kThisCase:
      break;
    case Measured::kNothing:
      sentences.push_back(fmt::format("no measured step is of {}: wider", framework));
      break;
    case Measured::kOtherCases:
      sentences.push_back(fmt::format("no measured step of {} is of a {} on {} in {}: wider",
                                      framework, work.shape.is_moe() ? "mixture" : "dense model",
                                      to_text(work.card.generation), to_text(precision_of(work))));
      break;
  }
  if (const double most = exceeded_mfu(work, seen, mfu); most > 0) {
    sentences.push_back(fmt::format("MFU of {}; above everything measured on {} in {}: {}",
                                    percent_text(mfu), to_text(work.card.generation),
                                    to_text(precision_of(work)), percent_text(most)));
  }
  return sentences;
}

ErrorInterval interval_of(const Work& work, const IntervalTable& table, const Seen& seen,
                          bool assumed, double mfu) {
  ErrorInterval interval = table.of(work.software.kind(work.shape.is_moe()));
  const std::int64_t projects = projects_like(work, seen);
  double wider = projects == 0 ? kNoProject : projects == 1 ? kOneProject : 1;
  if (!beyond_ranges(work, seen.ranges).empty()) wider *= kBeyondRange;
  const Measured measured = measured_of(work, seen);
  wider *= measured == Measured::kNothing      ? kNoSoftware
           : measured == Measured::kOtherCases ? kOtherCase
                                               : 1;
  if (assumed) wider *= kAssumed;
  interval.low = std::pow(interval.low, wider);
  interval.high = std::pow(interval.high, wider);
  if (const double most = exceeded_mfu(work, seen, mfu); most > 0) interval.high *= mfu / most;
  return interval;
}

}  // namespace assay::plan
