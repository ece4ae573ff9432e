// The model against every measured row that the project has.
//
// The split: each exact text of `source` is left out in turn, the constants are fitted to the rows
// of all other sources from the priors on, and the rows left out are predicted. Nothing of a row is
// known to the fit that predicts it.
#include "plan/calibrate/cross_validation.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <set>

#include "base/file.h"
#include "plan/calibrate/calibration.h"
#include "plan/calibrate/fit.h"
#include "plan/calibrate/residuals.h"
#include "plan/model/memory.h"

// Defined if the modules under test are sanitized; tests themselves are not.
extern "C" __attribute__((weak)) void __asan_init();

namespace assay::plan {
namespace {

std::vector<Row> all_measured_rows() {
  std::vector<Row> rows;
  for (const std::string name : {"training_rows.csv", "training_rows_single_node.csv"}) {
    const auto text =
        base::read_file(std::string(ASSAY_MEASURED_ROWS) + "/" + name, base::Bytes(1 << 24));
    EXPECT_TRUE(text) << name;
    auto parsed = parse_rows(text.value_or(""), name);
    EXPECT_TRUE(parsed) << name;
    for (Row& row : parsed.value_or(std::vector<Row>())) rows.push_back(std::move(row));
  }
  return rows;
}

void print_score(const char* what, const Score& score) {
  std::cout << fmt::format(
      "{}: {} rows, mean {:.2f} %, median {:.2f} %, in the interval {:.1f} %; memory: {} rows, "
      "mean {:.2f} %, median {:.2f} %\n",
      what, score.time.rows, 100 * score.time.mean, 100 * score.time.median, 100 * score.coverage,
      score.memory.rows, 100 * score.memory.mean, 100 * score.memory.median);
}

// As model/intervals.cc has them: what a failure prints can take their place.
std::string text_of(const IntervalTable& table) {
  std::string text;
  for (const ErrorInterval& one : table.by_class)
    text += fmt::format("{{{:.3f}, {:.3f}, {}}},\n", one.low, one.high, one.rows);
  return text;
}

std::string text_of(const RangeTable& table) {
  std::string text;
  for (const SeenRanges& seen : table) {
    for (const SeenRange& one : {seen.parameters, seen.ranks, seen.sequence, seen.card_flops})
      text += fmt::format("{{{:.4g}, {:.4g}}}, ", one.low, one.high);
    text += "\n";
  }
  return text;
}

// To the third decimal, up or down by one: the last bits of exp() differ between processors.
void expect_equal(const IntervalTable& made, const IntervalTable& shipped) {
  for (std::size_t c = 0; c < kSoftwareClasses; ++c) {
    EXPECT_NEAR(made.by_class[c].low, shipped.by_class[c].low, 0.001) << text_of(made);
    EXPECT_NEAR(made.by_class[c].high, shipped.by_class[c].high, 0.001) << text_of(made);
    EXPECT_EQ(made.by_class[c].rows, shipped.by_class[c].rows) << text_of(made);
  }
}

TEST(CrossValidation, PredictsSourcesItHasNotSeen) {
  if (__asan_init != nullptr) GTEST_SKIP() << "minutes under the sanitizers";
  const auto rows = all_measured_rows();
  const auto unseen = cross_validate(rows);
  const Score score_unseen = score(rows, unseen);
  print_score("sources left out", score_unseen);
  EXPECT_EQ(score_unseen.time.rows, 1614U);
  EXPECT_LE(score_unseen.time.mean, 0.08);
  EXPECT_GE(score_unseen.coverage, 0.75);
  EXPECT_LE(score_unseen.coverage, 0.85);

  const Constants constants = fit(rows);
  const MemoryConstants memory = fit_memory(rows);
  auto seen = predict_all(rows, constants, memory, {});
  const IntervalTable table = interval_table(residuals_of(rows, seen));
  seen = predict_all(rows, constants, memory, table);
  const Score score_seen = score(rows, seen);
  print_score("fitted to all", score_seen);
  EXPECT_LE(score_seen.time.mean, 0.06);
  EXPECT_EQ(score_seen.memory.rows, 26U);
  EXPECT_LE(score_seen.memory.mean, 0.07);

  // What is shipped is what the rows give.
  const auto shipped = predict_all(rows, shipped_constants(), shipped_memory_constants(), table);
  const Score score_shipped = score(rows, shipped);
  print_score("as shipped", score_shipped);
  EXPECT_NEAR(score_shipped.time.mean, score_seen.time.mean, 0.001);
  EXPECT_NEAR(score_shipped.memory.mean, score_seen.memory.mean, 0.001);
  expect_equal(table, shipped_intervals(true));
  expect_equal(interval_table(residuals_of(rows, unseen)), shipped_intervals(false));
}

// A run that was measured had room on its cards. 16 rows do not say what one needs to see it: 3
// write 32 sequences where their script took 16 twice, and 13 of the largest models and mixtures
// not what they compute again.
TEST(CrossValidation, RunsThatHappenedFitTheirCards) {
  const auto rows = all_measured_rows();
  const auto predictions = predict_all(rows, shipped_constants(), shipped_memory_constants(), {});
  std::map<std::string, std::pair<int, int>> by_family;
  int beyond_in_all = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].flagged || predictions[i].work == nullptr) continue;
    const base::Bytes need = whole_bytes(*predictions[i].memory_gib * 1024 * 1024 * 1024);
    auto& [beyond, all] = by_family[std::string(family_of(rows[i].source))];
    ++all;
    if (need <= predictions[i].work->card.memory) continue;
    ++beyond;
    ++beyond_in_all;
  }
  EXPECT_LE(beyond_in_all, 16);
  for (const auto& [family, counts] : by_family)
    std::cout << fmt::format("{}: {} of {} beyond their cards\n", family, counts.first,
                             counts.second);
}

TEST(CrossValidation, TheIntervalOfMemoryIsThatOfTheRows) {
  const auto rows = all_measured_rows();
  const auto predictions = predict_all(rows, shipped_constants(), shipped_memory_constants(), {});
  std::vector<WeightedValue> ratios;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (has_memory(rows[i]) && predictions[i].memory_gib)
      ratios.push_back({.value = *rows[i].memory_gib / *predictions[i].memory_gib, .weight = 1});
  }
  std::sort(ratios.begin(), ratios.end(),
            [](const WeightedValue& a, const WeightedValue& b) { return a.value < b.value; });
  const ErrorInterval shipped = memory_interval();
  EXPECT_EQ(static_cast<std::int64_t>(ratios.size()), shipped.rows);
  EXPECT_NEAR(weighted_quantile(ratios, 0.1), shipped.low, 0.002);
  EXPECT_NEAR(weighted_quantile(ratios, 0.9), shipped.high, 0.002);
}

TEST(CrossValidation, RowsOfShippedFamiliesHaveTheNarrowInterval) {
  const Calibration shipped = shipped_calibration();
  std::set<std::string> families;
  for (const Row& row : all_measured_rows()) {
    if (has_time(row)) families.emplace(family_of(row.source));
  }
  EXPECT_EQ(std::set<std::string>(shipped.families.begin(), shipped.families.end()), families);
  EXPECT_EQ(&shipped.intervals("llm.c scripts/run_*.sh of others"), &shipped.known_source);
  EXPECT_EQ(&shipped.intervals("somebody else's"), &shipped.unknown_source);
}

TEST(CrossValidation, ShippedRangesAreThoseOfTheRows) {
  EXPECT_EQ(text_of(ranges_of(all_measured_rows())), text_of(shipped_ranges()));
}

}  // namespace
}  // namespace assay::plan
