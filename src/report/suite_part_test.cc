#include "report/suite_part.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/html.h"
#include "report/testing/html.h"

namespace assay::report {
namespace {

using base::Json;
using ::testing::HasSubstr;
using ::testing::Not;

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
  const auto& goals = std::get<PageTable>(part->sections[1].blocks[0]);
  EXPECT_EQ(goals.rows[0][1].rating, Rating::kGood);
  EXPECT_EQ(goals.rows[1][1].rating, Rating::kOpen);
  EXPECT_EQ(goals.rows[0][2].number, 7.5);
  EXPECT_EQ(goals.rows[0][2].text, "7.5 ns");
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
  const auto& goals = std::get<PageTable>(part->sections[0].blocks[0]);
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
  const auto& table = std::get<PageTable>(part->sections[2].blocks[0]);
  EXPECT_EQ(table.rows[0][1].text, "+3.12 [1, 5]");
  EXPECT_EQ(table.rows[0][1].number, 3.12);
  EXPECT_FALSE(table.rows[1][1].number.has_value());
}

TEST(SuitePart, ColumnsInWhichNothingStandsAreLeftOut) {
  Json made = suite();
  made["tables"][0] = Json::parse(R"({"title": "t", "columns": ["", "a", "b", "c"],
      "rows": [["", "—", 0, ""], ["", "", "—", null]]})");
  const auto part = suite_part(made, "s");
  const auto& table = std::get<PageTable>(part->sections[2].blocks[0]);
  EXPECT_THAT(table.columns, ::testing::ElementsAre("", "b"));
  EXPECT_EQ(table.rows[1].size(), 2U);
  // Goals without a note have no column for notes, and a note that only says how is none.
  const auto planned = suite_part(judged({"planned"}), "s");
  const auto& goals = std::get<PageTable>(planned->sections[0].blocks[0]);
  EXPECT_EQ(goals.columns.back(), "how");
}

// Narrow screens show the first columns: the verdict, and what it was read off.
TEST(SuitePart, GoalsBeginWithTheVerdictAndOurValue) {
  Json made = judged({"planned"});
  made["goals"][0]["ours"] = 37.4;
  made["goals"][0]["unit"] = "$";
  const auto part = suite_part(made, "s");
  const auto& goals = std::get<PageTable>(part->sections[0].blocks[0]);
  EXPECT_EQ(goals.columns[1], "verdict");
  EXPECT_EQ(goals.columns[2], "ours");
  EXPECT_EQ(goals.rows[0][2].text, "$37.40");
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

}  // namespace
}  // namespace assay::report
