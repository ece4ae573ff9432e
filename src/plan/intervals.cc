// The tables are what plan/calibrate makes of the measured rows in tests/data/plan; a test there
// compares them.
#include "plan/intervals.h"

#include <fmt/format.h>

#include <cmath>

#include "base/units.h"

namespace assay::plan {
namespace {

// In the order of SoftwareClass.
constexpr IntervalTable kKnownSource = {{{
    {0.936, 1.156, 1295},
    {0.928, 1.051, 224},
    {0.927, 1.141, 61},
    {0.754, 1.260, 34},
}}};
constexpr IntervalTable kUnknownSource = {{{
    {0.919, 1.176, 1295},
    {0.934, 1.113, 224},
    {0.913, 1.163, 61},
    {0.746, 1.279, 34},
}}};

constexpr RangeTable kSeen = {};

std::string parameters_text(double value) {
  return base::short_count(std::llround(value)) + " parameters";
}

std::string ranks_text(double value) {
  return base::grouped(std::llround(value)) + (value == 1 ? " rank" : " ranks");
}

std::string sequence_text(double value) {
  return base::grouped(std::llround(value)) + " tokens in a sequence";
}

std::string card_text(double value) {
  return base::to_text(base::FlopsPerSecond(value)) + " per card";
}

void add_if_outside(double value, const Range& seen, std::string (*text)(double),
                    std::vector<std::string>& sentences) {
  if (value > seen.high) {
    sentences.push_back(
        fmt::format("{}; the largest comparable row has {}", text(value), text(seen.high)));
  } else if (value < seen.low) {
    sentences.push_back(
        fmt::format("{}; the smallest comparable row has {}", text(value), text(seen.low)));
  }
}

}  // namespace

const IntervalTable& shipped_intervals(bool known_source) {
  return known_source ? kKnownSource : kUnknownSource;
}

Interval interval_of(SoftwareClass kind, bool known_source) {
  return shipped_intervals(known_source).of(kind);
}

const RangeTable& shipped_ranges() {
  return kSeen;
}

std::vector<std::string> extrapolations(const Work& work, const RangeTable& ranges) {
  const SoftwareClass kind = work.software.kind(work.shape.is_moe());
  const SeenRanges& seen = ranges[static_cast<std::size_t>(kind)];
  if (!seen.any()) return {fmt::format("no comparable row: none is {}", to_text(kind))};
  std::vector<std::string> sentences;
  add_if_outside(work.shape.parameters, seen.parameters, parameters_text, sentences);
  add_if_outside(work.degrees.ranks, seen.ranks, ranks_text, sentences);
  add_if_outside(work.batch.sequence, seen.sequence, sequence_text, sentences);
  add_if_outside(work.card.bf16_flops, seen.card_flops, card_text, sentences);
  return sentences;
}

std::vector<std::string> extrapolations(const Work& work) {
  return extrapolations(work, shipped_ranges());
}

}  // namespace assay::plan
