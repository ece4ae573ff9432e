// The model against every measured row that the project has.
//
// The split: each project (a repository or paper) is left out in turn, the constants are fitted to
// the rows of all others from the priors on, and its rows are predicted. The projects of the frozen
// panel (tests/data/plan/README.md) are in no fit at all.
#include "plan/calibrate/cross_validation.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>
#include <set>

#include "base/csv.h"
#include "base/file.h"
#include "plan/calibrate/calibration.h"
#include "plan/calibrate/fit.h"
#include "plan/calibrate/residuals.h"
#include "plan/model/memory.h"

// Defined if the modules under test are sanitized; tests themselves are not.
extern "C" __attribute__((weak)) void __asan_init();

namespace assay::plan {
namespace {

std::string text_of_file(const std::string& name) {
  const auto text =
      base::read_file(std::string(ASSAY_MEASURED_ROWS) + "/" + name, base::Bytes(1 << 24));
  EXPECT_TRUE(text) << name;
  return text.value_or("");
}

std::set<std::string> frozen_projects() {
  std::set<std::string> projects;
  const auto table = base::parse_csv(text_of_file("frozen_panel.csv"), "frozen_panel.csv");
  EXPECT_TRUE(table);
  for (const auto& record : table->records) projects.insert(record.fields.front());
  EXPECT_EQ(projects.size(), 6U);
  return projects;
}

enum class Part { kFitted, kFrozen };

std::vector<Row> measured_rows(Part part) {
  const std::set<std::string> frozen = frozen_projects();
  std::vector<Row> rows;
  for (const std::string name :
       {"training_rows.csv", "training_rows_2.csv", "training_rows_single_node.csv"}) {
    auto parsed = parse_rows(text_of_file(name), name);
    EXPECT_TRUE(parsed) << name;
    for (Row& row : parsed.value_or(std::vector<Row>())) {
      // The panel was chosen when rates without batches were not compared.
      if (part == Part::kFrozen && row.by_rate) continue;
      if (frozen.contains(row.project) == (part == Part::kFrozen)) rows.push_back(std::move(row));
    }
  }
  return rows;
}

void print_score(const char* what, const Score& score) {
  std::cout << what << '\n';
  for (const ProjectScore& one : score.projects) {
    std::cout << fmt::format("| {} | {} | {} | {} | {:.1f} | {:.1f} | {:.1f} | {:.0f} |\n",
                             one.project, one.mixtures ? "mixtures" : "dense",
                             to_text(one.generation), one.time.rows, 100 * one.time.mean,
                             100 * one.time.median, 100 * one.time.worst, 100 * one.coverage);
  }
  for (const auto& [name, kind] :
       {std::pair("dense", score.dense), std::pair("mixtures", score.mixtures)}) {
    std::cout << fmt::format(
        "{}: {} projects, mean {:.1f} %, median {:.1f} %, worst {:.1f} %, in the interval {:.0f} "
        "%\n",
        name, kind.projects, 100 * kind.mean, 100 * kind.median, 100 * kind.worst,
        100 * kind.coverage);
  }
  std::cout << fmt::format("memory: {} rows, mean {:.1f} %, median {:.1f} %\n", score.memory.rows,
                           100 * score.memory.mean, 100 * score.memory.median);
}

// As model/intervals.cc has them: what a failure prints can take their place.
std::string text_of(const IntervalTable& table) {
  std::string text;
  for (const ErrorInterval& one : table.by_class)
    text += fmt::format("{{{:.3f}, {:.3f}, {}, {}}},\n", one.low, one.high, one.rows, one.projects);
  return text;
}

std::string text_of(const Seen& seen) {
  std::string text;
  for (const SeenRanges& ranges : seen.ranges) {
    for (const SeenRange& one :
         {ranges.parameters, ranges.ranks, ranges.sequence, ranges.card_flops})
      text += fmt::format("{{{:.4g}, {:.4g}}}, ", one.low, one.high);
    text += "\n";
  }
  for (const auto& kind : seen.projects) {
    for (const auto& cell : kind)
      text += fmt::format("{{{}, {}, {}}}, ", cell[0], cell[1], cell[2]);
    text += "\n";
  }
  return text;
}

// To the third decimal, up or down by one: the last bits of exp() differ between processors.
void expect_equal(const IntervalTable& made, const IntervalTable& shipped) {
  for (std::size_t c = 0; c < kSoftwareClasses; ++c) {
    EXPECT_NEAR(made.by_class[c].low, shipped.by_class[c].low, 0.002) << text_of(made);
    EXPECT_NEAR(made.by_class[c].high, shipped.by_class[c].high, 0.004) << text_of(made);
    EXPECT_EQ(made.by_class[c].rows, shipped.by_class[c].rows) << text_of(made);
    EXPECT_EQ(made.by_class[c].projects, shipped.by_class[c].projects) << text_of(made);
  }
}

TEST(CrossValidation, PredictsProjectsItHasNotSeen) {
  if (__asan_init != nullptr) GTEST_SKIP() << "minutes under the sanitizers";
  const auto rows = measured_rows(Part::kFitted);
  const auto unseen = cross_validate(rows);
  const Score left_out = score(rows, unseen);
  print_score("each project left out", left_out);
  EXPECT_EQ(left_out.dense.projects, 15U);
  EXPECT_LE(left_out.dense.mean, 0.075);
  EXPECT_GE(left_out.dense.coverage, 0.70);
  EXPECT_LE(left_out.dense.coverage, 0.90);
  EXPECT_EQ(left_out.mixtures.projects, 6U);
  EXPECT_LE(left_out.mixtures.mean, 0.165);
  EXPECT_GE(left_out.mixtures.coverage, 0.65);
  EXPECT_LE(left_out.mixtures.coverage, 0.90);

  // What is shipped is what the rows give.
  const Constants constants = fit(rows);
  const MemoryConstants memory = fit_memory(rows);
  const IntervalTable table = interval_table(residuals_of(rows, unseen));
  const Score fitted = score(rows, predict_all(rows, constants, memory, table, seen_in(rows)));
  const Score shipped = score(rows, predict_all(rows, shipped_calibration()));
  EXPECT_NEAR(shipped.time.mean, fitted.time.mean, 0.001);
  EXPECT_NEAR(shipped.memory.mean, fitted.memory.mean, 0.001);
  expect_equal(table, shipped_intervals());
}

TEST(CrossValidation, PredictsTheFrozenPanel) {
  const auto rows = measured_rows(Part::kFrozen);
  const Score panel = score(rows, predict_all(rows, shipped_calibration()));
  print_score("the frozen panel", panel);
  EXPECT_EQ(panel.dense.projects, 6U);
  EXPECT_LE(panel.dense.mean, 0.115);
  EXPECT_EQ(panel.mixtures.projects, 3U);
  // What plans say of it.
  EXPECT_NEAR(panel.dense.mean, panel_error(false).mean, 0.001);
  EXPECT_NEAR(panel.mixtures.mean, panel_error(true).mean, 0.001);
  EXPECT_EQ(panel_error(false).projects, 6);
  EXPECT_EQ(panel_error(true).projects, 3);
  EXPECT_LE(panel.mixtures.mean, 0.22);
  for (const double coverage : {panel.dense.coverage, panel.mixtures.coverage}) {
    EXPECT_GE(coverage, 0.70);
    EXPECT_LE(coverage, 0.90);
  }
}

// A run that was measured had room on its cards.
TEST(CrossValidation, RunsThatHappenedFitTheirCards) {
  const auto rows = measured_rows(Part::kFitted);
  const auto predictions = predict_all(rows, shipped_calibration());
  std::map<std::string, std::pair<int, int>> by_project;
  int beyond_in_all = 0;
  int all_rows = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].flagged || predictions[i].work == nullptr) continue;
    const base::Bytes need = whole_bytes(*predictions[i].memory_gib * 1024 * 1024 * 1024);
    auto& [beyond, all] = by_project[rows[i].project];
    ++all;
    ++all_rows;
    if (need <= predictions[i].work->card.memory) continue;
    ++beyond;
    ++beyond_in_all;
  }
  for (const auto& [project, counts] : by_project) {
    std::cout << fmt::format("{}: {} of {} beyond their cards\n", project, counts.first,
                             counts.second);
  }
  EXPECT_LE(beyond_in_all, all_rows / 20);
}

TEST(CrossValidation, TheIntervalOfMemoryIsThatOfTheRows) {
  const auto rows = measured_rows(Part::kFitted);
  const auto predictions = predict_all(rows, shipped_calibration());
  std::map<std::string, double> counts;
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (has_memory(rows[i]) && predictions[i].memory_gib) ++counts[rows[i].project];
  std::vector<WeightedValue> ratios;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (has_memory(rows[i]) && predictions[i].memory_gib)
      ratios.push_back({.value = *rows[i].memory_gib / *predictions[i].memory_gib,
                        .weight = 1 / counts[rows[i].project]});
  }
  std::sort(ratios.begin(), ratios.end(),
            [](const WeightedValue& a, const WeightedValue& b) { return a.value < b.value; });
  const ErrorInterval shipped = memory_interval();
  EXPECT_EQ(static_cast<std::int64_t>(ratios.size()), shipped.rows);
  EXPECT_EQ(static_cast<std::int64_t>(counts.size()), shipped.projects);
  // As intervals of steps: wider the fewer projects there are.
  const double wider = 1 + 2.0 / static_cast<double>(counts.size());
  EXPECT_NEAR(std::pow(weighted_quantile(ratios, 0.1), wider), shipped.low, 0.002);
  EXPECT_NEAR(std::pow(weighted_quantile(ratios, 0.9), wider), shipped.high, 0.002);
}

TEST(CrossValidation, WhatIsShippedAsSeenIsWhatTheRowsHave) {
  EXPECT_EQ(text_of(seen_in(measured_rows(Part::kFitted))), text_of(shipped_seen()));
}

}  // namespace
}  // namespace assay::plan
