// Parts of suites and experiments.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/text.h"
#include "compare/findings.h"
#include "report/experiment_part.h"
#include "report/html.h"
#include "report/markdown.h"
#include "report/suite_part.h"
#include "report/testing/html.h"

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
  const auto& goals = std::get<Table>(part->sections[1].blocks[0]);
  EXPECT_EQ(goals.rows[0][1].rating, Rating::kGood);
  EXPECT_EQ(goals.rows[1][1].rating, Rating::kOpen);
  EXPECT_EQ(goals.rows[0][3].number, 7.5);
  EXPECT_EQ(goals.rows[0][3].text, "7.5 ns");
  testing::read_html(html({.title = "s", .parts = {*part}}));
  Json missed = suite();
  missed["goals"][1]["verdict"] = "FAIL";
  EXPECT_EQ(suite_part(missed, "s.json")->verdict.rating, Rating::kBad);
}

// Goals that were judged by what their labels say.
Json judged(const std::vector<std::string>& labels) {
  Json made = {{"suite", "s"}, {"goals", Json::array()}};
  for (const std::string& label : labels) {
    made["goals"].push_back({{"what", "w"},
                             {"goal", "within 15%"},
                             {"measured", label == "planned" ? Json(nullptr) : Json(1)},
                             {"ours", 1},
                             {"label", label},
                             {"verdict", "PASS"}});
  }
  return made;
}

TEST(SuitePart, APlanIsNotCalledReached) {
  const Verdict planned = suite_part(judged({"planned", "planned"}), "s")->verdict;
  EXPECT_EQ(planned.word, "planned");
  EXPECT_EQ(planned.rating, Rating::kPlain);
  EXPECT_EQ(planned.text, "2 of 2 goals (within 15%) reached: 0 measured, 2 planned");
  const Verdict both = suite_part(judged({"planned", "measured"}), "s")->verdict;
  EXPECT_EQ(both.word, "partly planned");
  EXPECT_EQ(both.text, "2 of 2 goals (within 15%) reached: 1 measured, 1 planned");
  EXPECT_EQ(suite_part(judged({"recorded", "measured"}), "s")->verdict.word, "reached");
}

TEST(SuitePart, GoalsInTheFitAreMarked) {
  Json made = judged({"planned", "planned"});
  made["goals"][0]["in_fit"] = true;
  const auto part = suite_part(made, "s");
  ASSERT_TRUE(part);
  EXPECT_THAT(part->verdict.text, HasSubstr("2 planned; 1 in the fit"));
  const auto& goals = std::get<Table>(part->sections[0].blocks[0]);
  EXPECT_EQ(goals.rows[0][4].text, "planned, in the fit");
  EXPECT_EQ(goals.rows[1][4].text, "planned");
}

TEST(SuitePart, AFailedCaseOrAnInterruptionIsNotReached) {
  Json made = judged({"measured"});
  made["cases"] = Json::parse(R"([{"case": "a", "state": "done", "wall_s": [1.5]},
                                  {"case": "b", "state": "failed", "why": "exited with 7"}])");
  const Verdict failed = suite_part(made, "s")->verdict;
  Json old = judged({"measured"});  // as earlier versions wrote it
  old["steps"] = Json::parse(R"([{"step": "b", "state": "failed"}])");
  EXPECT_EQ(suite_part(old, "s")->verdict.text, failed.text);
  EXPECT_EQ(failed.word, "failed");
  EXPECT_EQ(failed.rating, Rating::kBad);
  EXPECT_THAT(failed.text, HasSubstr("failed: b"));
  Json unread = judged({"measured"});
  unread["failed"] = true;
  EXPECT_EQ(suite_part(unread, "s")->verdict.word, "failed");
  Json cut = judged({"measured"});
  cut["complete"] = false;
  cut["quick"] = true;
  EXPECT_EQ(suite_part(cut, "s")->verdict.word, "interrupted");
  EXPECT_THAT(suite_part(cut, "s")->verdict.text, HasSubstr("a quick run"));
}

TEST(SuitePart, HasMachineAndOrigin) {
  Json made = suite();
  made["title"] = "what a tracer adds";
  made["reproduces"] = "their page";
  made["url"] = "https://example.org";
  made["quick"] = true;
  made["begun"] = "2026-11-15T20:00:00Z";
  made["commit"] = "c0ffee";
  made["machine"] = {{"hostname", "engine"}, {"cpu", {{"model", "Example CPU"}}}};
  made["tables"][0]["note"] = "published: of whole runs";
  const auto part = suite_part(made, "s.json");
  ASSERT_TRUE(part);
  EXPECT_EQ(part->title, "tracer: what a tracer adds");
  const std::string text = html({.title = "s", .parts = {*part}});
  // Not only in the raw data.
  const std::string shown = text.substr(0, text.find("application/json"));
  for (const char* said : {"their page, https://example.org", "A quick run", "20:00:00Z", "c0ffee",
                           "engine", "Example CPU", "published: of whole runs"}) {
    EXPECT_THAT(shown, HasSubstr(said));
  }
}

TEST(SuitePart, TextsThatStandForNumbersAreSortedAsNumbers) {
  Json made = suite();
  made["tables"][0]["rows"] =
      Json::parse(R"([["a", {"text": "+3.12 [1, 5]", "value": 3.12}], ["b", {"text": "x"}]])");
  const auto part = suite_part(made, "s");
  const auto& table = std::get<Table>(part->sections[2].blocks[0]);
  EXPECT_EQ(table.rows[0][1].text, "+3.12 [1, 5]");
  EXPECT_EQ(table.rows[0][1].number, 3.12);
  EXPECT_FALSE(table.rows[1][1].number.has_value());
}

TEST(SuitePart, ColumnsInWhichNothingStandsAreLeftOut) {
  Json made = suite();
  made["tables"][0] = Json::parse(R"({"title": "t", "columns": ["", "a", "b", "c"],
      "rows": [["", "—", 0, ""], ["", "", "—", null]]})");
  const auto part = suite_part(made, "s");
  const auto& table = std::get<Table>(part->sections[2].blocks[0]);
  EXPECT_THAT(table.columns, ::testing::ElementsAre("", "b"));
  EXPECT_EQ(table.rows[1].size(), 2U);
  // Goals without a note have no column for notes, and a note that only says how is none.
  const auto planned = suite_part(judged({"planned"}), "s");
  const auto& goals = std::get<Table>(planned->sections[0].blocks[0]);
  EXPECT_EQ(goals.columns.back(), "how");
}

TEST(SuitePart, AChartHasItsLinesAndTheIdeal) {
  Json made = suite();
  made["tables"][0]["chart"] = Json::parse(R"({"x": "GPUs", "y": "%", "lines": [
      {"name": "7B, published", "points": [[1, 57.8], [2, 51.7]]},
      {"name": "7B, planned", "points": [[1, 52.0, 46.0, 56.8]]}],
    "ideal": {"name": "ideal", "at_zero": 57.8, "per_x": 0}})");
  const auto part = suite_part(made, "s");
  ASSERT_TRUE(part) << part.error().line();
  const auto& chart = std::get<Chart>(part->sections[2].blocks[0]);
  EXPECT_EQ(chart.name, "suite-1");
  for (const char* said : {"7B, published: 57.8 at 1", "7B, published: 51.7 at 2", ">ideal<"}) {
    EXPECT_THAT(chart.wide.svg(), HasSubstr(said));
  }
  for (const char* wrong : {R"({"lines": 3})", R"([])", R"({"lines": [{"points": [[1]]}]})",
                            R"({"lines": [{"points": [["a", 1]]}]})", R"({"lines": [3]})",
                            R"({"lines": [{},{},{},{},{},{},{},{},{},{},{},{},{}]})"}) {
    made["tables"][0]["chart"] = Json::parse(wrong);
    const auto refused = suite_part(made, "s");
    ASSERT_FALSE(refused) << wrong;
    EXPECT_THAT(refused.error().line(), HasSubstr("table 'depth' has a chart that is not"));
  }
}

TEST(SuitePart, WhatIsNoSuiteIsOneLine) {
  const auto line = [](const char* text) {
    const auto part = suite_part(Json::parse(text), "s.json");
    return part ? std::string("fine") : part.error().line();
  };
  EXPECT_THAT(line("[]"), HasSubstr("s.json: is not a suite result"));
  EXPECT_THAT(line(R"({"suite": 3})"), HasSubstr("has no 'suite'"));
  EXPECT_THAT(line(R"({"suite": "x", "goals": {}})"), HasSubstr("'goals' is not a list"));
  EXPECT_THAT(line(R"({"suite": "x", "goals": [3]})"), HasSubstr("not an object with 'what'"));
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
      compare::ArmRun run;
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

PagePart part_of(const compare::Measured& m) {
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
  const PagePart part = part_of(m);
  EXPECT_EQ(part.verdict.word, "FAIL");
  EXPECT_EQ(part.verdict.rating, Rating::kBad);
  const std::string text = html({.title = "e", .parts = {part}});
  testing::read_html(text);
  EXPECT_THAT(text, HasSubstr("&lt;script&gt;a&lt;/script&gt;"));
  const auto& pairs = std::get<Chart>(part.sections[1].blocks[0]);
  EXPECT_EQ(pairs.name, "pairs-1");
  const auto elements = plot::testing::elements_of(pairs.wide);
  // A mark per pair, and one per group in the legend.
  EXPECT_EQ(plot::testing::those(elements, "circle").size(), 11U + 1U);
  for (std::int64_t block = 0; block < 12; ++block) {
    const auto at = static_cast<std::size_t>(block) * 3;
    const double percent = 100 * (m.runs[at + 1].value / m.runs[at].value - 1);
    EXPECT_THAT(pairs.wide.svg(), HasSubstr(fmt::format("{} and {:+.3g} %", block + 1, percent)));
  }
  EXPECT_THAT(pairs.wide.description(), HasSubstr("noise floor"));
}

TEST(ExperimentPart, WithoutAPairIsReported) {
  compare::Measured m = measured(0);
  m.failures = {{.run = 1, .block = 0, .arm = 1, .started = "t", .what = "exited with 7"}};
  const PagePart part = part_of(m);
  EXPECT_EQ(part.verdict.word, "NO VERDICT");
  EXPECT_EQ(part.verdict.text, "run 1, arm B: exited with 7");
  EXPECT_EQ(part.title, "b against <script>a</script>");
  const std::string text = markdown({.title = "e", .parts = {part}});
  EXPECT_THAT(text, HasSubstr("It ended at run 1, arm B: exited with 7."));
  // Nothing but the same failure would follow.
  EXPECT_THAT(text, ::testing::Not(HasSubstr("assay compare --resume exp")));
  m.failures.clear();
  EXPECT_THAT(markdown({.title = "e", .parts = {part_of(m)}}),
              HasSubstr("assay compare --resume exp"));
}

TEST(ExperimentPart, AFailureIsNamedAndLeavesNoVerdict) {
  compare::Measured m = measured(12);
  m.failures = {{.run = 37, .block = 12, .arm = 1, .started = "t", .what = "exited with 7"}};
  const PagePart part = part_of(m);
  EXPECT_EQ(part.verdict.word, "NO VERDICT");
  EXPECT_EQ(part.verdict.rating, Rating::kOpen);
  EXPECT_EQ(part.verdict.text, "run 37, arm B: exited with 7");
  EXPECT_THAT(markdown({.title = "e", .parts = {part}}),
              ::testing::Not(::testing::AnyOf(HasSubstr("INCONCLUSIVE"), HasSubstr("FAIL"))));
}

// Kinds of pairs that do not occur are not in the legend; blocks are whole numbers.
TEST(ExperimentPart, TheLegendHasWhatIsDrawn) {
  const auto pairs_of = [](const compare::Measured& m) {
    const PagePart part = part_of(m);
    return std::get<Chart>(part.sections[1].blocks[0]).wide.svg();
  };
  compare::Measured m = measured(12);
  EXPECT_THAT(pairs_of(m), HasSubstr("host disturbed"));
  EXPECT_THAT(pairs_of(m), ::testing::Not(HasSubstr("warm-up")));
  m = measured(2);
  m.marks.clear();
  const std::string plain = pairs_of(m);
  EXPECT_THAT(plain, ::testing::Not(HasSubstr("host disturbed")));
  base::for_each_line(plain, [](std::string_view line) {
    const bool tick_of_blocks = line.find("small middle") != std::string_view::npos;
    EXPECT_TRUE(!tick_of_blocks || line.find(".5<") == std::string_view::npos) << line;
  });
}

TEST(ExperimentPart, AScanIsShownByValue) {
  compare::Measured m = measured(12);
  m.experiment.scanned = {"N"};
  m.experiment.judgement.judged = false;
  for (std::size_t arm = 0; arm < 2; ++arm) {
    m.experiment.arms[arm].values = {std::to_string(arm + 1)};
    m.experiment.arms[arm].name = "N=" + std::to_string(arm + 1);
    m.experiment.arms[arm].scanned_command = "sleep {N}";
  }
  const PagePart part = part_of(m);
  EXPECT_EQ(part.title, "sleep {N} for N = 1, 2");
  EXPECT_EQ(part.verdict.word, "NOT JUDGED");
  EXPECT_EQ(part.verdict.text, "least: N=1, the first");
  EXPECT_EQ(part.sections[0].title, "By value");
  const auto& table = std::get<Table>(part.sections[0].blocks[0]);
  EXPECT_EQ(table.columns.front(), "N");
  ASSERT_EQ(table.rows.size(), 3U);
  EXPECT_EQ(table.rows[1][0].text, "2");
  EXPECT_EQ(std::get<Chart>(part.sections[0].blocks[1]).name, "values");
  const std::string text = markdown({.title = "e", .parts = {part}});
  EXPECT_THAT(text, ::testing::Not(::testing::AnyOf(HasSubstr("margin"), HasSubstr("allowed"),
                                                    HasSubstr("Goals"))));
}

TEST(ExperimentPart, ManyPairsStaySmall) {
  const std::string text = html({.title = "e", .parts = {part_of(measured(5000))}});
  EXPECT_LT(text.size(), 2'000'000U);
}

}  // namespace
}  // namespace assay::report
