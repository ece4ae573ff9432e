// Parts of suites and experiments.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "compare/findings.h"
#include "plot/frame.h"
#include "report/experiment_part.h"
#include "report/suite_part.h"
#include "report/testing/html.h"
#include "report/writers.h"

namespace assay::report {
namespace {

using base::Json;
using ::testing::HasSubstr;

Json suite() {
  return Json::parse(R"({"suite": "tracer", "note": "on two cores",
    "goals": [{"what": "launch", "goal": "<= 10", "measured": 7.5, "unit": "ns", "verdict": "PASS"},
              {"what": "open", "goal": 1, "measured": null, "verdict": "not run", "note": "no GPU"}],
    "tables": [{"title": "depth", "columns": ["d", "ours"], "rows": [[1, 0.25], [2, "n/a"]]}]})");
}

TEST(SuitePart, GoalsGetAVerdictAndTablesASection) {
  const auto part = suite_part(suite(), "s.json");
  ASSERT_TRUE(part);
  EXPECT_EQ(part->title, "tracer");
  EXPECT_EQ(part->verdict.word, "open");
  EXPECT_EQ(part->verdict.text, "1 of 2 goals reached");
  ASSERT_EQ(part->sections.size(), 3U);
  const auto& goals = std::get<Table>(part->sections[0].blocks[0]);
  EXPECT_EQ(goals.rows[0][4].outcome, Outcome::kGood);
  EXPECT_EQ(goals.rows[1][4].outcome, Outcome::kOpen);
  EXPECT_EQ(goals.rows[0][2].number, 7.5);
  testing::read_html(html({.title = "s", .parts = {*part}}));
  Json missed = suite();
  missed["goals"][1]["verdict"] = "FAIL";
  EXPECT_EQ(suite_part(missed, "s.json")->verdict.outcome, Outcome::kBad);
}

TEST(SuitePart, WhatIsNoSuiteIsOneLine) {
  const auto line = [](const char* text) {
    const auto part = suite_part(Json::parse(text), "s.json");
    return part ? std::string("fine") : part.error().line();
  };
  EXPECT_THAT(line("[]"), HasSubstr("s.json: is no result of a suite"));
  EXPECT_THAT(line(R"({"suite": 3})"), HasSubstr("names no 'suite'"));
  EXPECT_THAT(line(R"({"suite": "x", "goals": {}})"), HasSubstr("'goals' is no list"));
  EXPECT_THAT(line(R"({"suite": "x", "goals": [3]})"), HasSubstr("no object with 'what'"));
  EXPECT_THAT(line(R"({"suite": "x", "goals": [{"what": "a", "measured": [1]}]})"),
              HasSubstr("'measured' is a list or object"));
  EXPECT_THAT(line(R"({"suite": "x", "tables": [{"columns": ["a"], "rows": [[1, 2]]}]})"),
              HasSubstr("not as long as its columns"));
  EXPECT_EQ(line(R"({"suite": "x"})"), "fine");
}

// Blocks of 100 against 102, the fourth with a host that was disturbed.
compare::Measured measured(std::int64_t blocks) {
  compare::Measured m;
  m.experiment.arms = {{.name = "A", .command = "<script>a</script>"},
                       {.name = "B", .command = "b"}};
  m.experiment.metric = *compare::parse_metric("regex:took");
  for (std::int64_t block = 0; block < blocks; ++block) {
    for (std::size_t arm = 0; arm < 3; ++arm) {
      compare::RunRecord run;
      run.run = static_cast<std::int64_t>(m.runs.size()) + 1;
      run.block = block;
      run.arm = arm;
      run.value = (arm == 1 ? 102 : 100) + 0.01 * static_cast<double>((block * 7 + run.run) % 5);
      m.runs.push_back(run);
    }
  }
  m.marks = {{3, 3, {"others used 1.9 processors"}}};
  return m;
}

Part part_of(const compare::Measured& m) {
  const compare::Findings findings = compare::findings_of(m, true);
  return experiment_part({.measured = m,
                          .findings = findings,
                          .directory = "exp",
                          .stopped = "all pairs were made",
                          .preflight = {"load is 7"},
                          .data = {{"verdict", "FAIL"}}});
}

TEST(ExperimentPart, DrawsEveryPairWhereItsRatioLies) {
  const compare::Measured m = measured(12);
  const Part part = part_of(m);
  EXPECT_EQ(part.verdict.word, "FAIL");
  EXPECT_EQ(part.verdict.outcome, Outcome::kBad);
  const std::string text = html({.title = "e", .parts = {part}});
  testing::read_html(text);
  EXPECT_THAT(text, HasSubstr("&lt;script&gt;a&lt;/script&gt;"));
  const auto& pairs = std::get<Chart>(part.sections[1].blocks[0]);
  EXPECT_EQ(pairs.name, "pairs-1");
  const auto elements = plot::testing::elements_of(pairs.svg);
  // A mark per pair, and one per group in the legend.
  EXPECT_EQ(plot::testing::those(elements, "circle").size(), 11U + 1U);
  for (std::int64_t block = 0; block < 12; ++block) {
    const auto at = static_cast<std::size_t>(block) * 3;
    const double percent = 100 * (m.runs[at + 1].value / m.runs[at].value - 1);
    EXPECT_THAT(pairs.svg, HasSubstr(fmt::format("{} and {:+.3g} %", block + 1, percent)));
  }
  EXPECT_THAT(plot::words_of(pairs.svg), HasSubstr("noise floor"));
}

TEST(ExperimentPart, ManyPairsStaySmall) {
  const std::string text = html({.title = "e", .parts = {part_of(measured(5000))}});
  EXPECT_LT(text.size(), 2'000'000U);
}

}  // namespace
}  // namespace assay::report
