// The tables are what plan/calibrate makes of the measured rows in tests/data/plan; a test there
// compares them.
#include "plan/model/intervals.h"

#include <fmt/format.h>

#include <cmath>
#include <string_view>

#include "base/units.h"

namespace assay::plan {
namespace {

// Both in the order of SoftwareClass.
constexpr IntervalTable kKnownSource = {{{
    {0.932, 1.162, 1295},
    {0.949, 1.057, 224},
    {0.928, 1.106, 61},
    {0.748, 1.271, 34},
}}};
constexpr IntervalTable kUnknownSource = {{{
    {0.918, 1.184, 1295},
    {0.972, 1.119, 224},
    {0.916, 1.131, 61},
    {0.735, 1.287, 34},
}}};

constexpr RangeTable kSeen = {{
    {{2.034e+08, 1.008e+12}, {2, 3360}, {1024, 2048}, {3.12e+14, 3.12e+14}},
    {{1.241e+08, 7.055e+10}, {1, 512}, {512, 6.554e+04}, {3.12e+14, 9.89e+14}},
    {{1.245e+08, 4.62e+11}, {1, 6144}, {1024, 8192}, {3.12e+14, 2.25e+15}},
    {{9.23e+09, 1.026e+12}, {8, 1024}, {4096, 4096}, {9.89e+14, 2.25e+15}},
}};

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

}  // namespace

const IntervalTable& shipped_intervals(bool known_source) {
  return known_source ? kKnownSource : kUnknownSource;
}

ErrorInterval memory_interval() {
  return {0.929, 1.145, 26};
}

const RangeTable& shipped_ranges() {
  return kSeen;
}

std::vector<std::string> extrapolations(const Work& work, const RangeTable& ranges) {
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

}  // namespace assay::plan
