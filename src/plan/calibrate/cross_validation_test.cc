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
#include "plan/testing/documented.h"

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

// The first column of a table.
std::set<std::string> projects_in(const std::string& name) {
  std::set<std::string> projects;
  const auto table = base::parse_csv(text_of_file(name), name);
  EXPECT_TRUE(table) << name;
  for (const auto& record : table->records) projects.insert(record.fields.front());
  return projects;
}

std::vector<Row> rows_in(const std::string& name) {
  auto rows = parse_rows(text_of_file(name), name);
  EXPECT_TRUE(rows) << name;
  return rows.value_or(std::vector<Row>());
}

// That constants and structure are chosen with.
std::vector<Row> table_rows() {
  std::vector<Row> rows;
  for (const std::string name : {"training_rows.csv", "training_rows_2.csv", "training_rows_3.csv",
                                 "training_rows_single_node.csv"}) {
    for (Row& row : rows_in(name)) rows.push_back(std::move(row));
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

// Section 1 of docs/plan-model.md, a table of projects.
void expect_documented(const std::string& before_table, const Score& score) {
  std::vector<testing::TableRow> rows;
  for (const ProjectScore& one : score.projects) {
    rows.push_back(
        {{one.project, one.mixtures ? "mixtures" : "dense", std::string(to_text(one.generation))},
         {static_cast<double>(one.time.rows), 100 * one.time.mean, 100 * one.time.median,
          100 * one.time.worst, 100 * one.coverage}});
  }
  testing::expect_table(
      testing::Page(ASSAY_SOURCE_DIR, "docs/plan-model.md").table_after(before_table), rows);
}

double projects_of(const KindScore& kind) {
  return static_cast<double>(kind.projects);
}

const std::vector<Row>& fitted_rows() {
  static const std::vector<Row> kRows = table_rows();
  return kRows;
}
const std::vector<RowPrediction>& left_out_predictions() {
  static const std::vector<RowPrediction> kPredictions = cross_validate(fitted_rows());
  return kPredictions;
}
const Score& left_out_score() {
  static const Score kScore = score(fitted_rows(), left_out_predictions());
  return kScore;
}
// Of projects that are in no other table. They decide nothing: neither fits nor intervals nor the
// structure of the model. A change of the model that moves their figures updates
// docs/plan-model.md, which lists every look at them.
const std::vector<Row>& panel_rows() {
  static const std::vector<Row> kRows = rows_in("panel_rows.csv");
  return kRows;
}
const std::vector<RowPrediction>& panel_predictions() {
  static const std::vector<RowPrediction> kPredictions =
      predict_all(panel_rows(), shipped_calibration());
  return kPredictions;
}
const Score& panel_score() {
  static const Score kScore = score(panel_rows(), panel_predictions());
  return kScore;
}

// Of rows that state their memory, by project.
std::map<std::string, int> projects_with_memory(std::span<const Row> rows,
                                                std::span<const RowPrediction> predictions) {
  std::map<std::string, int> projects;
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (has_memory(rows[i]) && predictions[i].memory_gib) ++projects[rows[i].project];
  return projects;
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
    for (const SeenRange& one : {ranges.parameters, ranges.ranks, ranges.sequence,
                                 ranges.card_flops, ranges.local_experts})
      text += fmt::format("{{{:.4g}, {:.4g}}}, ", one.low, one.high);
    text += "\n";
  }
  for (const auto& kind : seen.projects) {
    for (const auto& cell : kind)
      text += fmt::format("{{{}, {}, {}}}, ", cell[0], cell[1], cell[2]);
    text += "\n";
  }
  for (const std::uint64_t cases : seen.software) text += fmt::format("{:#x}, ", cases);
  text += "\n";
  for (const auto& cell : seen.most_mfu)
    text += fmt::format("{{{:.3f}, {:.3f}, {:.3f}}}, ", cell[0], cell[1], cell[2]);
  return text + "\n";
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
  const auto& rows = fitted_rows();
  const auto& unseen = left_out_predictions();
  const Score& left_out = left_out_score();
  print_score("each project left out", left_out);
  EXPECT_EQ(left_out.dense.projects, 30U);
  EXPECT_LE(left_out.dense.mean, 0.102);
  EXPECT_GE(left_out.dense.coverage, 0.80);
  // More than 80 %: intervals are for unseen software, whose errors are larger (interval_table).
  EXPECT_LE(left_out.dense.coverage, 0.94);
  EXPECT_EQ(left_out.mixtures.projects, 14U);
  EXPECT_LE(left_out.mixtures.mean, 0.225);
  EXPECT_GE(left_out.mixtures.coverage, 0.80);
  EXPECT_LE(left_out.mixtures.coverage, 0.94);

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

TEST(CrossValidation, ThePanelIsOfProjectsThatNothingElseHas) {
  const std::set<std::string> listed = projects_in("panel.csv");
  EXPECT_EQ(listed.size(), 34U);
  std::map<std::string, int> counts;
  for (const Row& row : panel_rows()) {
    ++counts[row.project];
    EXPECT_TRUE(listed.contains(row.project)) << row.id;
    EXPECT_FALSE(row.candidates.empty()) << row.id << ": " << row.reason;
  }
  EXPECT_EQ(counts.size(), listed.size());
  for (const auto& [project, count] : counts) EXPECT_LE(count, 12) << project;
  for (const Row& row : fitted_rows()) EXPECT_FALSE(listed.contains(row.project)) << row.id;
}

TEST(CrossValidation, PredictsThePanel) {
  const Score& panel = panel_score();
  print_score("the panel", panel);
  // What plans and the documentation say about unseen software.
  EXPECT_EQ(panel_error(false).projects, static_cast<std::int64_t>(panel.dense.projects));
  EXPECT_EQ(panel_error(true).projects, static_cast<std::int64_t>(panel.mixtures.projects));
  EXPECT_NEAR(panel.dense.mean, panel_error(false).mean, 0.001);
  EXPECT_NEAR(panel.mixtures.mean, panel_error(true).mean, 0.001);
  EXPECT_NEAR(panel.dense.coverage, panel_error(false).coverage, 0.01);
  EXPECT_NEAR(panel.mixtures.coverage, panel_error(true).coverage, 0.01);
}

// Tables and sentences that state these errors.
TEST(CrossValidation, PagesStateTheErrorsOfThePanel) {
  const Score& panel = panel_score();
  const KindScore& d = panel.dense;
  const KindScore& m = panel.mixtures;
  expect_documented("No other row of the panel was looked at", panel);

  double scored = 0;
  double slower = 0;
  double doubtful = 0;
  double memory_inside = 0;
  for (std::size_t i = 0; i < panel_rows().size(); ++i) {
    const Row& row = panel_rows()[i];
    const RowPrediction& made = panel_predictions()[i];
    doubtful += row.flagged ? 1 : 0;
    if (has_memory(row) && made.memory_gib) {
      const double ratio = *row.memory_gib / *made.memory_gib;
      const ErrorInterval memory_bounds =
          row.memory_counted ? needed_memory_interval() : shown_memory_interval();
      memory_inside += ratio >= memory_bounds.low && ratio <= memory_bounds.high ? 1 : 0;
    }
    if (!has_time(row) || !made.step_s) continue;
    ++scored;
    slower += *row.step_s > *made.step_s ? 1 : 0;
  }
  const testing::Page model(ASSAY_SOURCE_DIR, "docs/plan-model.md");
  const auto all = static_cast<double>(panel_rows().size());
  model.says("\n# of the # rows have a `doubt` or no batch and are not scored. # of the # scored",
             {doubtful, all, slower, scored});
  model.says(
      "| **frozen panel**: projects that no fit, no interval and no choice has used; mean of the "
      "projects' mean errors | **# %** (# projects) | **# %** (#) |\n"
      "| the same: median / worst project | # / # % | # / # % |\n"
      "| the same: measured steps inside the 80 % interval | # % | # % |",
      {100 * d.mean, projects_of(d), 100 * m.mean, projects_of(m), 100 * d.median, 100 * d.worst,
       100 * m.median, 100 * m.worst, 100 * d.coverage, 100 * m.coverage});
  const auto memory_rows = static_cast<double>(panel.memory.rows);
  const auto memory_of =
      static_cast<double>(projects_with_memory(panel_rows(), panel_predictions()).size());
  model.says("on the panel, # rows of # projects: # % mean, # % median, # % inside the interval",
             {memory_rows, memory_of, 100 * panel.memory.mean, 100 * panel.memory.median,
              100 * memory_inside / memory_rows});

  const testing::Page plan(ASSAY_SOURCE_DIR, "docs/plan.md");
  plan.says(
      "| **frozen panel** | **# %** mean, # % median, # % worst (# projects) | **# %** mean, # % "
      "median, # % worst (#) |",
      {100 * d.mean, 100 * d.median, 100 * d.worst, projects_of(d), 100 * m.mean, 100 * m.median,
       100 * m.worst, projects_of(m)});
  plan.says("and # % mean, # % median on the panel (# runs of # projects)",
            {100 * panel.memory.mean, 100 * panel.memory.median, memory_rows, memory_of});
  const testing::Page readme(ASSAY_SOURCE_DIR, "README.md");
  readme.says("predicted step times are off by # % for dense models and # % for mixtures",
              {100 * d.mean, 100 * m.mean});
  readme.says("(means over # and # projects", {projects_of(d), projects_of(m)});
  readme.says("medians # and # %", {100 * d.median, 100 * m.median});
  readme.says("the 80 % intervals contain # and # % of the measured step times",
              {100 * d.coverage, 100 * m.coverage});
  readme.says("predicted memory is off by # % (median # %; # runs of # of these projects",
              {100 * panel.memory.mean, 100 * panel.memory.median, memory_rows, memory_of});
}

TEST(CrossValidation, PagesStateTheErrorsOfOtherProjects) {
  if (__asan_init != nullptr) GTEST_SKIP() << "minutes under the sanitizers";
  const Score& others = left_out_score();
  const Score& panel = panel_score();
  expect_documented("All other projects, each predicted by constants", others);
  const KindScore& d = others.dense;
  const KindScore& m = others.mixtures;
  const testing::Page model(ASSAY_SOURCE_DIR, "docs/plan-model.md");
  model.says(
      "| each of the other projects, predicted by constants fitted to the rest | # % (#) | # % (#) "
      "|\n"
      "| the same: median / worst project | # / # % | # / # % |\n"
      "| the same: measured steps inside the 80 % interval | # % | # % |",
      {100 * d.mean, projects_of(d), 100 * m.mean, projects_of(m), 100 * d.median, 100 * d.worst,
       100 * m.median, 100 * m.worst, 100 * d.coverage, 100 * m.coverage});
  const auto memory_rows = static_cast<double>(others.memory.rows);
  const auto memory_of =
      static_cast<double>(projects_with_memory(fitted_rows(), left_out_predictions()).size());
  model.says("- memory, # rows of # projects, each left out of the fit: # % mean, # % median;",
             {memory_rows, memory_of, 100 * others.memory.mean, 100 * others.memory.median});
  const testing::Page plan(ASSAY_SOURCE_DIR, "docs/plan.md");
  plan.says(
      "| other projects, each predicted by constants that were fitted without it | # % mean, # % "
      "median, # % worst (#) | # % mean, # % median, # % worst (#) |\n"
      "| measured steps inside the 80 % interval: panel, others | # %, # % | # %, # % |",
      {100 * d.mean, 100 * d.median, 100 * d.worst, projects_of(d), 100 * m.mean, 100 * m.median,
       100 * m.worst, projects_of(m), 100 * panel.dense.coverage, 100 * d.coverage,
       100 * panel.mixtures.coverage, 100 * m.coverage});
  plan.says("Memory of other software: # % mean, # % median (# runs of # projects, each left out",
            {100 * others.memory.mean, 100 * others.memory.median, memory_rows, memory_of});
  testing::Page(ASSAY_SOURCE_DIR, "README.md")
      .says("# % on the # runs of # other projects, each left out of the fit",
            {100 * others.memory.mean, memory_rows, memory_of});
}

// A run that was measured had room on its cards.
TEST(CrossValidation, RunsThatHappenedFitTheirCards) {
  const auto& rows = fitted_rows();
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

// Of rows whose memory the allocator counted, or of those that say what nvidia-smi shows: measured
// over predicted, each project left out of the fit and with the same weight.
ErrorInterval memory_interval_of(bool counted) {
  const auto& rows = fitted_rows();
  const auto& predictions = left_out_predictions();
  std::vector<std::pair<double, std::string>> found;
  std::map<std::string, double> counts;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!has_memory(rows[i]) || !predictions[i].memory_gib || rows[i].memory_counted != counted)
      continue;
    found.emplace_back(*rows[i].memory_gib / *predictions[i].memory_gib, rows[i].project);
    ++counts[rows[i].project];
  }
  std::sort(found.begin(), found.end());
  std::vector<WeightedValue> ratios;
  ratios.reserve(found.size());
  for (const auto& [ratio, project] : found)
    ratios.push_back({.value = ratio, .weight = 1 / counts.at(project)});
  return {weighted_quantile(ratios, 0.1), weighted_quantile(ratios, 0.9),
          static_cast<std::int64_t>(ratios.size()), static_cast<std::int64_t>(counts.size())};
}

TEST(CrossValidation, TheIntervalsOfMemoryAreThoseOfProjectsLeftOut) {
  if (__asan_init != nullptr) GTEST_SKIP() << "minutes under the sanitizers";
  const ErrorInterval needed = memory_interval_of(true);
  // Two projects say little about the next: Student's tenth percentile.
  const double wider = wider_by_projects(static_cast<double>(needed.projects));
  EXPECT_EQ(needed.rows, needed_memory_interval().rows);
  EXPECT_EQ(needed.projects, needed_memory_interval().projects);
  EXPECT_NEAR(std::pow(needed.low, wider), needed_memory_interval().low, 0.002);
  EXPECT_NEAR(std::pow(needed.high, wider), needed_memory_interval().high, 0.002);
  // --calibrate computes the same.
  const auto made = needed_memory_of(fitted_rows(), left_out_predictions()).value();
  EXPECT_NEAR(made.low, needed_memory_interval().low, 0.002);
  EXPECT_NEAR(made.high, needed_memory_interval().high, 0.002);
  EXPECT_EQ(made.rows, needed.rows);
  const ErrorInterval shown = memory_interval_of(false);
  EXPECT_DOUBLE_EQ(shown_memory_of(fitted_rows(), left_out_predictions()).value().high, shown.high);
  EXPECT_EQ(shown.rows, shown_memory_interval().rows);
  EXPECT_EQ(shown.projects, shown_memory_interval().projects);
  EXPECT_NEAR(shown.low, shown_memory_interval().low, 0.002);
  EXPECT_NEAR(shown.high, shown_memory_interval().high, 0.002);
}

TEST(CrossValidation, TheShippedConstantsNameTheProjectsOfTheirFit) {
  std::set<std::string> projects;
  for (const Row& row : fitted_rows())
    if (has_time(row)) projects.insert(row.project);
  const Calibration shipped = shipped_calibration();
  EXPECT_EQ(std::vector<std::string>(projects.begin(), projects.end()),
            shipped.fitted_to->projects);
}

TEST(CrossValidation, WhatIsShippedAsSeenIsWhatTheRowsHave) {
  EXPECT_EQ(text_of(seen_in(fitted_rows())), text_of(shipped_seen()));
}

}  // namespace
}  // namespace assay::plan
