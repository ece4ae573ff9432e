// The model against every measured row that the project has.
//
// The split: each project (a repository or paper) is left out in turn, the constants are fitted to
// the rows of all others from the priors on, and its rows are predicted. The projects of the two
// frozen panels (tests/data/plan/README.md) are in no fit at all.
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

std::set<std::string> frozen_projects() {
  std::set<std::string> projects = projects_in("frozen_panel.csv");
  EXPECT_EQ(projects.size(), 6U);
  return projects;
}

// Rows of training_rows_2.csv whose `doubt` has a reason.
std::set<std::string> doubtful_rows() {
  std::set<std::string> ids;
  const auto table = base::parse_csv(text_of_file("training_rows_2.csv"), "training_rows_2.csv");
  EXPECT_TRUE(table);
  const std::size_t doubt = *table->column("doubt");
  for (const auto& record : table->records) {
    if (record.fields.size() > doubt && !record.fields[doubt].empty())
      ids.insert(record.fields.front());
  }
  return ids;
}

enum class Part { kFitted, kFrozen };

std::vector<Row> measured_rows(Part part, bool with_rates = false) {
  const std::set<std::string> frozen = frozen_projects();
  std::vector<Row> rows;
  for (const std::string name :
       {"training_rows.csv", "training_rows_2.csv", "training_rows_single_node.csv"}) {
    auto parsed = parse_rows(text_of_file(name), name);
    EXPECT_TRUE(parsed) << name;
    for (Row& row : parsed.value_or(std::vector<Row>())) {
      // The panel was chosen when rates without batches were not compared.
      if (part == Part::kFrozen && row.by_rate && !with_rates) continue;
      if (frozen.contains(row.project) == (part == Part::kFrozen)) rows.push_back(std::move(row));
    }
  }
  return rows;
}

// Of projects that are in no other table. They decide nothing: neither fits nor intervals nor the
// structure of the model. A change of the model that moves their figures updates
// docs/plan-model.md, which lists every look at them.
std::vector<Row> second_panel() {
  const std::string name = "second_panel_rows.csv";
  auto rows = parse_rows(text_of_file(name), name);
  EXPECT_TRUE(rows);
  return rows.value_or(std::vector<Row>());
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
  static const std::vector<Row> kRows = measured_rows(Part::kFitted);
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
const Score& panel_score() {
  static const Score kScore = [] {
    const auto rows = measured_rows(Part::kFrozen);
    return score(rows, predict_all(rows, shipped_calibration()));
  }();
  return kScore;
}
const std::vector<Row>& second_rows() {
  static const std::vector<Row> kRows = second_panel();
  return kRows;
}
const std::vector<RowPrediction>& second_predictions() {
  static const std::vector<RowPrediction> kPredictions =
      predict_all(second_rows(), shipped_calibration());
  return kPredictions;
}
const Score& second_score() {
  static const Score kScore = score(second_rows(), second_predictions());
  return kScore;
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
  EXPECT_EQ(left_out.dense.projects, 15U);
  EXPECT_LE(left_out.dense.mean, 0.075);
  EXPECT_GE(left_out.dense.coverage, 0.70);
  // More than 80 %: intervals are for strangers, who are further off (interval_table).
  EXPECT_LE(left_out.dense.coverage, 0.94);
  EXPECT_EQ(left_out.mixtures.projects, 6U);
  EXPECT_LE(left_out.mixtures.mean, 0.165);
  EXPECT_GE(left_out.mixtures.coverage, 0.65);
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

TEST(CrossValidation, PredictsTheFirstPanel) {
  const Score& panel = panel_score();
  print_score("the first panel", panel);
  EXPECT_EQ(panel.dense.projects, 6U);
  EXPECT_LE(panel.dense.mean, 0.115);
  EXPECT_EQ(panel.mixtures.projects, 3U);
  EXPECT_LE(panel.mixtures.mean, 0.22);
  for (const double coverage : {panel.dense.coverage, panel.mixtures.coverage}) {
    EXPECT_GE(coverage, 0.70);
    EXPECT_LE(coverage, 0.90);
  }
}

TEST(CrossValidation, TheSecondPanelIsOfProjectsThatNothingElseHas) {
  const auto& rows = second_rows();
  const std::set<std::string> listed = projects_in("second_panel.csv");
  EXPECT_EQ(listed.size(), 12U);
  std::map<std::string, int> counts;
  for (const Row& row : rows) {
    ++counts[row.project];
    EXPECT_TRUE(listed.contains(row.project)) << row.id;
    EXPECT_FALSE(row.candidates.empty()) << row.id << ": " << row.reason;
  }
  EXPECT_EQ(counts.size(), listed.size());
  for (const auto& [project, count] : counts) EXPECT_LE(count, 15) << project;
  for (const Part part : {Part::kFitted, Part::kFrozen})
    for (const Row& row : measured_rows(part)) EXPECT_FALSE(listed.contains(row.project));
}

TEST(CrossValidation, PredictsTheSecondPanel) {
  const Score& panel = second_score();
  print_score("the second panel", panel);
  // What plans and the documentation say of strangers.
  EXPECT_EQ(panel_error(false).projects, static_cast<std::int64_t>(panel.dense.projects));
  EXPECT_EQ(panel_error(true).projects, static_cast<std::int64_t>(panel.mixtures.projects));
  EXPECT_NEAR(panel.dense.mean, panel_error(false).mean, 0.001);
  EXPECT_NEAR(panel.mixtures.mean, panel_error(true).mean, 0.001);
  EXPECT_NEAR(panel.dense.coverage, 0.48, 0.01);
  EXPECT_NEAR(panel.mixtures.coverage, 0.59, 0.01);
}

// The first panel's rows that state their memory, also those whose batch is not known: off by how
// much, in percent. Few, so each is listed in docs/plan-model.md.
TEST(CrossValidation, MemoryOfTheFirstPanelIsDocumentedRowByRow) {
  const auto rows = measured_rows(Part::kFrozen, true);
  const auto predictions = predict_all(rows, shipped_calibration());
  std::vector<testing::TableRow> table;
  const std::set<std::string> doubtful = doubtful_rows();
  std::vector<double> scored;
  int inside = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].memory_gib || !predictions[i].memory_gib) continue;
    const double off = *predictions[i].memory_gib / *rows[i].memory_gib - 1;
    const ErrorInterval interval = memory_interval();
    const double ratio = 1 / (1 + off);
    inside += ratio >= interval.low && ratio <= interval.high ? 1 : 0;
    if (!doubtful.contains(rows[i].id)) scored.push_back(std::abs(off));
    table.push_back({{rows[i].id, rows[i].project},
                     {*rows[i].memory_gib, *predictions[i].memory_gib, 100 * off}});
    std::cout << fmt::format("| {} | {} | {:.1f} | {:.1f} | {:.0f} |\n", rows[i].id,
                             rows[i].project, *rows[i].memory_gib, *predictions[i].memory_gib,
                             100 * off);
  }
  EXPECT_EQ(table.size(), 9U);
  const testing::Page model(ASSAY_SOURCE_DIR, "docs/plan-model.md");
  testing::expect_table(model.table_after("Nine rows of the first panel state their memory."),
                        table);
  EXPECT_EQ(inside, 2);
  ASSERT_EQ(scored.size(), 2U);
  const double mean = 100 * (scored[0] + scored[1]) / 2;
  model.says("the two rows that are not in doubt are # % off", {mean});
  testing::Page(ASSAY_SOURCE_DIR, "docs/plan.md")
      .says("the two runs of the first panel whose memory is not in doubt are # % off", {mean});
}

// Tables and sentences that state these errors.
TEST(CrossValidation, PagesStateTheErrorsOfTheSecondPanel) {
  const Score& second = second_score();
  const KindScore& d = second.dense;
  const KindScore& m = second.mixtures;
  expect_documented("### The second panel", second);

  double scored = 0;
  double slower = 0;
  double doubtful = 0;
  std::set<std::string> with_memory;
  double more_memory = 0;
  for (std::size_t i = 0; i < second_rows().size(); ++i) {
    const Row& row = second_rows()[i];
    const RowPrediction& made = second_predictions()[i];
    doubtful += row.flagged ? 1 : 0;
    if (has_memory(row) && made.memory_gib) {
      with_memory.insert(row.project);
      more_memory += *row.memory_gib > *made.memory_gib ? 1 : 0;
    }
    if (!has_time(row) || !made.step_s) continue;
    ++scored;
    slower += *row.step_s > *made.step_s ? 1 : 0;
  }
  const testing::Page model(ASSAY_SOURCE_DIR, "docs/plan-model.md");
  const auto all = static_cast<double>(second_rows().size());
  model.says("\n# of the # rows have a `doubt` and are not scored. # of the # scored steps take",
             {doubtful, all, slower, scored});
  model.says(
      "| **second frozen panel**: projects that no fit, no interval and no choice has used; mean "
      "of the projects' mean errors | **# %** (# projects) | **# %** (#) |\n"
      "| the same: median / worst project | # / # % | # / # % |\n"
      "| the same: measured steps inside the 80 % interval | # % | # % |",
      {100 * d.mean, projects_of(d), 100 * m.mean, projects_of(m), 100 * d.median, 100 * d.worst,
       100 * m.median, 100 * m.worst, 100 * d.coverage, 100 * m.coverage});
  const auto memory_rows = static_cast<double>(second.memory.rows);
  EXPECT_GT(more_memory, memory_rows / 2) << "docs/plan.md says: mostly more than predicted";
  EXPECT_EQ(with_memory.size(), 3U) << "pages say: three projects";
  model.says("on the second panel, # rows of three projects: # % mean, # % median.",
             {memory_rows, 100 * second.memory.mean, 100 * second.memory.median});

  const testing::Page plan(ASSAY_SOURCE_DIR, "docs/plan.md");
  plan.says(
      "| **second frozen panel** | **# %** mean, # % median, # % worst (# projects) | **# %** "
      "mean, # % median, # % worst (#) |",
      {100 * d.mean, 100 * d.median, 100 * d.worst, projects_of(d), 100 * m.mean, 100 * m.median,
       100 * m.worst, projects_of(m)});
  plan.says("but # % on the second panel (# runs of three projects",
            {100 * second.memory.mean, memory_rows});
  const testing::Page readme(ASSAY_SOURCE_DIR, "README.md");
  readme.says("predicted step times are off by # % for dense models and # % for mixtures",
              {100 * d.mean, 100 * m.mean});
  readme.says("(means over # and # projects", {projects_of(d), projects_of(m)});
  readme.says("the 80 % intervals contain only # and # % of the measured step times",
              {100 * d.coverage, 100 * m.coverage});
  readme.says("predicted memory is off by # % (# runs of three of these projects",
              {100 * second.memory.mean, memory_rows});
}

TEST(CrossValidation, PagesStateTheErrorsOfTheFirstPanelAndOfOtherProjects) {
  if (__asan_init != nullptr) GTEST_SKIP() << "minutes under the sanitizers";
  const Score& first = panel_score();
  const Score& others = left_out_score();
  const Score& second = second_score();
  expect_documented("The first frozen panel was chosen before the model was changed for it", first);
  expect_documented("All other projects, each predicted by constants", others);
  const KindScore& d = first.dense;
  const KindScore& m = first.mixtures;
  const KindScore& od = others.dense;
  const KindScore& om = others.mixtures;

  const testing::Page model(ASSAY_SOURCE_DIR, "docs/plan-model.md");
  model.says(
      "but that decided what was dropped | # % (# projects) | # % (#) |\n"
      "| the same: median / worst project | # / # % | # / # % |\n"
      "| the same: measured steps inside the 80 % interval | # % | # % |\n"
      "| each of the other projects, predicted by constants fitted to the rest | # % (#) | # % (#) "
      "|\n"
      "| the same: median / worst project | # / # % | # / # % |\n"
      "| the same: measured steps inside the 80 % interval | # % | # % |",
      {100 * d.mean,   projects_of(d),  100 * m.mean,   projects_of(m),    100 * d.median,
       100 * d.worst,  100 * m.median,  100 * m.worst,  100 * d.coverage,  100 * m.coverage,
       100 * od.mean,  projects_of(od), 100 * om.mean,  projects_of(om),   100 * od.median,
       100 * od.worst, 100 * om.median, 100 * om.worst, 100 * od.coverage, 100 * om.coverage});
  const auto together = [](const KindScore& one, const KindScore& other) {
    return 100 * (one.coverage * projects_of(one) + other.coverage * projects_of(other)) /
           (projects_of(one) + projects_of(other));
  };
  model.says(
      "Over all # dense and # mixture cases without the second panel, the intervals contain # % "
      "and # % of",
      {projects_of(d) + projects_of(od), projects_of(m) + projects_of(om), together(d, od),
       together(m, om)});
  model.says(
      "- memory, # rows of KempnerForge and Megatron-Bridge, each left out of the fit: # % mean, # "
      "% median;",
      {static_cast<double>(others.memory.rows), 100 * others.memory.mean,
       100 * others.memory.median});
  // The last evaluation is of what is shipped.
  model.says("Evaluated once; constants as they were | # / # % | # / # % | # / # % |",
             {100 * d.mean, 100 * m.mean, 100 * d.coverage, 100 * m.coverage, 100 * od.mean,
              100 * om.mean});

  const testing::Page plan(ASSAY_SOURCE_DIR, "docs/plan.md");
  plan.says(
      "| first frozen panel | # % mean, # % median, # % worst (#) | # % mean, # % median, # % "
      "worst (#) |\n"
      "| other projects, each predicted by constants that were fitted without it | # % mean, # % "
      "median, # % worst (#) | # % mean, # % median, # % worst (#) |\n"
      "| measured steps inside the 80 % interval: second panel, first panel, others | # %, # %, # "
      "% | # %, # %, # % |",
      {100 * d.mean,
       100 * d.median,
       100 * d.worst,
       projects_of(d),
       100 * m.mean,
       100 * m.median,
       100 * m.worst,
       projects_of(m),
       100 * od.mean,
       100 * od.median,
       100 * od.worst,
       projects_of(od),
       100 * om.mean,
       100 * om.median,
       100 * om.worst,
       projects_of(om),
       100 * second.dense.coverage,
       100 * d.coverage,
       100 * od.coverage,
       100 * second.mixtures.coverage,
       100 * m.coverage,
       100 * om.coverage});
  plan.says("Memory of other software: # % (# runs of KempnerForge and Megatron-Bridge, each",
            {100 * others.memory.mean, static_cast<double>(others.memory.rows)});
  testing::Page(ASSAY_SOURCE_DIR, "README.md")
      .says("of these projects; # % on the # runs of two projects",
            {100 * others.memory.mean, static_cast<double>(others.memory.rows)});
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

TEST(CrossValidation, TheShippedConstantsNameTheProjectsOfTheirFit) {
  std::set<std::string> projects;
  for (const Row& row : fitted_rows())
    if (has_time(row)) projects.insert(row.project);
  const Calibration shipped = shipped_calibration();
  EXPECT_EQ(std::vector<std::string>(projects.begin(), projects.end()),
            shipped.fitted_to->projects);
}

TEST(CrossValidation, WhatIsShippedAsSeenIsWhatTheRowsHave) {
  EXPECT_EQ(text_of(seen_in(measured_rows(Part::kFitted))), text_of(shipped_seen()));
}

}  // namespace
}  // namespace assay::plan
