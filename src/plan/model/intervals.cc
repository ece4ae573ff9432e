// The tables are what plan/calibrate makes of the measured rows in tests/data/plan; a test there
// compares them.
#include "plan/model/intervals.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string_view>

#include "base/units.h"

namespace assay::plan {
namespace {

// In the order of SoftwareClass.
constexpr IntervalTable kShippedIntervals = {{{
    {0.897, 1.136, 1291, 3},
    {0.862, 1.209, 49, 2},
    {0.887, 1.164, 458, 11},
    {0.792, 1.497, 265, 6},
}}};

constexpr Seen kShippedSeen = {
    {{
        {{2.034e+08, 1.008e+12}, {2, 3072}, {1024, 2048}, {3.12e+14, 3.12e+14}},
        {{7.32e+09, 1.484e+10}, {8, 1024}, {2048, 4096}, {3.12e+14, 9.89e+14}},
        {{1.245e+08, 4.058e+11}, {1, 1.638e+04}, {1024, 8192}, {4.7e+13, 2.5e+15}},
        {{9.23e+09, 1.04e+12}, {8, 2048}, {4096, 8192}, {9.89e+14, 2.5e+15}},
    }},
    {{
        {{{0, 0, 0}, {6, 0, 0}, {7, 6, 0}, {1, 3, 2}, {1, 1, 0}, {1, 2, 0}}},
        {{{0, 0, 0}, {0, 0, 0}, {3, 4, 0}, {3, 3, 1}, {0, 0, 0}, {1, 0, 0}}},
    }},
};

// By which the logarithms of an interval's ends grow for each thing that is unlike what was
// measured.
constexpr double kNoProject = 1.5;
constexpr double kOneProject = 1.2;
constexpr double kBeyondRange = 1.25;
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
  return sentences;
}

}  // namespace

const IntervalTable& shipped_intervals() {
  return kShippedIntervals;
}

PanelError panel_error(bool mixtures) {
  return mixtures ? PanelError{0.219, 3} : PanelError{0.113, 6};
}

ErrorInterval memory_interval() {
  return {0.800, 1.322, 45, 2};
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

std::vector<std::string> extrapolations(const Work& work, const Seen& seen) {
  std::vector<std::string> sentences = beyond_ranges(work, seen.ranges);
  const std::int64_t projects = projects_like(work, seen);
  if (projects <= 1) {
    const std::string case_text =
        fmt::format("{} was measured on {} in {}", work.shape.is_moe() ? "mixture" : "dense model",
                    to_text(work.card.generation), to_text(precision_of(work)));
    sentences.push_back(projects == 0 ? fmt::format("no {}: wide", case_text)
                                      : fmt::format("a {} by one project only: wider", case_text));
  }
  return sentences;
}

ErrorInterval interval_of(const Work& work, const IntervalTable& table, const Seen& seen,
                          bool assumed) {
  ErrorInterval interval = table.of(work.software.kind(work.shape.is_moe()));
  const std::int64_t projects = projects_like(work, seen);
  double wider = projects == 0 ? kNoProject : projects == 1 ? kOneProject : 1;
  if (!beyond_ranges(work, seen.ranges).empty()) wider *= kBeyondRange;
  if (assumed) wider *= kAssumed;
  interval.low = std::pow(interval.low, wider);
  interval.high = std::pow(interval.high, wider);
  return interval;
}

}  // namespace assay::plan
