// Suite files: what is in one, and that every mistake is reported with file and line.
#include "suite/read_suite.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "suite/suite.h"

namespace assay::suite {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kGood = R"toml(title = "what it is"
reproduces = "somebody's page"

[settings]
cases = 40
train = "train --cases @{cases}"

[quick]
cases = 3

[record.card]
machine = "a card"
date = 2026-11-15
commit = "abc1234"
command = "bench"

[[case]]
name = "plan"
plan = "demo"

[[case]]
name = "run"
command = "@{train} --of @{what}"
with = { what = "x" }
needs = { gpus = 2, nvlink = true, program = ["a", "b"] }
limit = "2min"
repeat = 3

[[table]]
title = "t"
unit = "ms"
value = "json:a"
times = 1000
figures = [
  { what = "one", published = 1.5, planned = "plan", measured = { case = "run", value = "regex:([0-9]+)" }, recorded = { value = 2, from = "card" }, goal = "within 10%" },
  { what = "two", published = "< 5", why = "there is no such machine" },
]
)toml";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

TEST(ReadSuite, EveryKeyIsRead) {
  const auto suite = read_suite(kGood, "dir/mine.toml");
  ASSERT_TRUE(suite.has_value()) << suite.error().line();
  EXPECT_EQ(suite->name, "mine");
  ASSERT_EQ(suite->cases.size(), 2U);
  const SuiteCase& run = suite->cases[1];
  EXPECT_EQ(run.kind, CaseKind::kCommand);
  EXPECT_EQ(run.needs.gpus, 2);
  EXPECT_TRUE(run.needs.nvlink);
  EXPECT_EQ(run.needs.programs, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(run.limit, base::Seconds(120));
  EXPECT_EQ(run.repeat, 3);
  EXPECT_EQ(*filled_in(*suite, run, false), "train --cases 40 --of x");
  EXPECT_EQ(*filled_in(*suite, run, true), "train --cases 3 --of x");
  const Figure& one = suite->tables[0].figures[0];
  EXPECT_EQ(one.published, 1.5);
  EXPECT_EQ(one.planned->times, 1000);
  EXPECT_EQ(one.planned->value.text(), "json:a");
  EXPECT_EQ(one.measured->times, 1);  // a separate place begins anew
  EXPECT_EQ(one.recorded->commit, "abc1234");
  EXPECT_EQ(one.recorded->date, "2026-11-15");
  EXPECT_EQ(one.goal->kind, GoalKind::kWithin);
  EXPECT_EQ(suite->tables[0].figures[1].published_as, "< 5");
}

TEST(ReadSuite, WhatDividesIsInTheSameOutputOrInAnother) {
  const auto same = read_suite(
      replaced(kGood, "planned = \"plan\"", "planned = { case = \"plan\", per = \"json:b\" }"),
      "f");
  ASSERT_TRUE(same.has_value()) << same.error().line();
  EXPECT_EQ(same->tables[0].figures[0].planned->per->text(), "json:b");
  EXPECT_EQ(same->tables[0].figures[0].planned->per_case, "");
  EXPECT_EQ(same->tables[0].figures[0].planned->times, 1000);
  std::string text = replaced(kGood, "name = \"run\"",
                              "name = \"other\"\nplan = \"demo\"\n[[case]]\nname = \"run\"");
  text = replaced(text, "times = 1000",
                  "times = 1000\nper = { case = \"other\", value = \"json:b\" }");
  const auto other = read_suite(text, "f");
  ASSERT_TRUE(other.has_value()) << other.error().line();
  EXPECT_EQ(other->tables[0].figures[0].planned->per_case, "other");
  EXPECT_EQ(other->tables[0].figures[0].measured->per_case, "");  // a separate place begins anew
}

// Release 0.1 called cases steps.
TEST(ReadSuite, OldFilesAreRead) {
  std::string old = kGood;
  for (const auto& [name, before] : {std::pair("[[case]]", "[[step]]"), {"{ case =", "{ step ="}}) {
    for (std::size_t at; (at = old.find(name)) != std::string::npos;) {
      old.replace(at, std::string_view(name).size(), before);
    }
  }
  const auto suite = read_suite(old, "f.toml");
  ASSERT_TRUE(suite.has_value()) << suite.error().line();
  EXPECT_EQ(suite->cases.size(), 2U);
  EXPECT_EQ(suite->tables[0].figures[0].measured->case_name, "run");
}

struct BadSuite {
  const char* from;
  const char* to;
  const char* line;  // what the error begins with
};

TEST(ReadSuite, ErrorsNameFileAndLine) {
  const std::vector<BadSuite> bad = {
      {"plan = \"demo\"", "plan = 3", "f.toml:19: plan is 3, not a non-empty string"},
      {"plan = \"demo\"", "plam = \"demo\"", "f.toml:17: case 'plan' has no action; give it"},
      {"plan = \"demo\"", "plan = \"demo\"\ncommand = \"x\"",
       "f.toml:20: case 'plan' has more than one action"},
      {"plan = \"demo\"", "plan = \"demo\"\nrepeat = 2", "f.toml:17: case 'plan' is not a command"},
      {"name = \"plan\"", "name = \"../plan\"",
       "f.toml:17: '../plan' cannot be the name of a case"},
      {"name = \"run\"", "name = \"plan\"", "f.toml:21: there is a case 'plan' already"},
      {"limit = \"2min\"", "limit = \"soon\"", "f.toml:26: limit: "},
      {"limit = \"2min\"", "limit = \"0s\"", "f.toml:21: case 'run' has no time"},
      {"limit = \"2min\"", "limits = \"2min\"",
       "f.toml:26: unknown key 'limits'; did you mean 'limit'?"},
      {"repeat = 3", "repeat = 0", "f.toml:21: repeat = 0 is not from 1 to 1000"},
      {"gpus = 2", "gpus = -2", "f.toml:25: gpus is -2, not a count"},
      {"gpus = 2", "gpu = 2", "f.toml:25: unknown key 'gpu'"},
      {"@{what}", "@{waht}",
       "f.toml:23: case 'run' uses '@{waht}', which is not a setting; did you mean 'what'?"},
      {"@{what}", "@{what", "f.toml:23: case 'run' uses '@{what', which has no closing brace"},
      {"cases @{cases}", "cases @{train}", "f.toml:23: the setting 'train' refers to itself"},
      {"cases = 3", "stops = 3", "f.toml: [quick] changes 'stops', which is not a setting"},
      {"planned = \"plan\"", "planned = \"plam\"",
       "f.toml:35: there is no case 'plam'; did you mean 'plan'?"},
      {"case = \"run\"", "case = \"plan\"",
       "f.toml:35: case 'plan' (plan) only computes, so it has no measured value"},
      {"planned = \"plan\"", "planned = \"run\"",
       "f.toml:35: case 'run' (command) only measures, so it has no planned value"},
      {"planned = \"plan\"", "planned = { case = \"plan\", per = 3 }",
       "f.toml:35: per is 3, not a place, or { case"},
      {"planned = \"plan\"", "planned = { case = \"plan\", per = { case = \"plan\" } }",
       "f.toml:35: per is a table, not a place, or { case"},
      {"planned = \"plan\"",
       "planned = { case = \"plan\", per = { case = \"plam\", value = \"json:b\" } }",
       "f.toml:35: there is no case 'plam'; did you mean 'plan'?"},
      {"planned = \"plan\"",
       "planned = { case = \"plan\", per = { case = \"run\", value = \"json:b\" } }",
       "f.toml:35: case 'run' (command) only measures, so it has no planned value"},
      {"planned = \"plan\"",
       "planned = { case = \"plan\", per = { case = \"plan\", value = \"wall\" } }",
       "f.toml:35: does not say where the figure is"},
      {"planned = \"plan\"", "planned = { case = \"plan\", per = \"stored:loss\" }",
       "f.toml:35: per: 'stored:loss' is not in a case's output"},
      {"value = \"json:a\"\n", "", "f.toml:34: does not say where the figure is"},
      {"regex:([0-9]+)", "regex:([0-9]+",
       "f.toml:35: value: '([0-9]+' is not a regular expression"},
      {"regex:([0-9]+)", "stored:loss",
       "f.toml:35: value: 'stored:loss' is not in a case's output"},
      {"from = \"card\"", "from = \"cord\"", "f.toml:35: there is no [record.cord]"},
      {"from = \"card\"", "machine = \"m\", date = 2026-01-02, commit = \"c\", command = \"x\"",
       "f.toml:11: no figure uses [record.card]; remove it, or use it"},
      {"value = 2, from", "value = 2, low = 1, from",
       "f.toml:35: a recorded interval has two ends"},
      {"value = 2, from", "value = 2, low = 3, high = 1, from",
       "f.toml:35: a recorded interval has two ends"},
      {"unit = \"ms\"", "unit = \"ms\"\nchart = { ideal = \"same\" }",
       "f.toml:32: a chart needs a title for its axis"},
      {"unit = \"ms\"", "unit = \"ms\"\nchart = { x = \"n\", ideal = \"best\" }",
       "f.toml:32: ideal: 'best' is not an ideal line; same or linear"},
      {"unit = \"ms\"", "unit = \"ms\"\nchart = 3", "f.toml:32: chart is 3, not a table"},
      {"published = 1.5", "published = 1.5, line = \"a\"",
       "f.toml:35: 'one' is on a line without an x"},
      {"commit = \"abc1234\"\n", "",
       "f.toml:34: a recorded figure does not say where it comes from"},
      {"date = 2026-11-15", "date = \"today\"",
       "f.toml:13: date is the string 'today', not a date"},
      {"within 10%", "about 10", "f.toml:35: goal: 'about 10' is not a goal"},
      {"published = 1.5, ", "", "f.toml:35: a goal with 'within' needs a published number"},
      {", why = \"there is no such machine\"", "",
       "f.toml:36: 'two' is neither measured, planned nor recorded"},
      {"what = \"one\"", "what = \"one\", why = \"no\"",
       "f.toml:35: 'one' is measured, so it needs no why"},
      {"title = \"what it is\"\n", "", "f.toml: a suite has a title"},
      {"title = \"t\"\n", "", "f.toml:29: a table has a title"},
      {"[[table]]", "[table]", "f.toml:29: table is a table, not a list: [[table]]"},
      {"[[case]]", "[[case]", "f.toml:17: "},
  };
  for (const BadSuite& each : bad) {
    const auto suite = read_suite(replaced(kGood, each.from, each.to), "f.toml");
    ASSERT_FALSE(suite.has_value()) << each.to;
    EXPECT_THAT(suite.error().line(), StartsWith(each.line));
    EXPECT_EQ(suite.error().code, base::ExitCode::kUsage);
  }
}

TEST(ReadSuite, ASettingThatGrowsWithoutEndIsNoBomb) {
  std::string text =
      replaced(kGood, "cases = 40",
               "cases = \"@{b}@{b}@{b}@{b}@{b}@{b}\"\nb = "
               "\"@{c}@{c}@{c}@{c}@{c}@{c}@{c}\"\nc = \"@{d}@{d}@{d}@{d}@{d}@{d}\"\nd = "
               "\"@{e}@{e}@{e}@{e}@{e}@{e}@{e}@{e}\"\ne = \"@{f}@{f}@{f}@{f}\"\nf = \"" +
                   std::string(2000, 'x') + "\"");
  const auto suite = read_suite(text, "f.toml");
  ASSERT_FALSE(suite.has_value());
  EXPECT_THAT(suite.error().line(), HasSubstr("is too long"));
}

RC_GTEST_PROP(ReadSuite, NoBytesBreakIt, ()) {
  // A good suite with a piece cut out, doubled, or replaced by anything.
  std::string text = kGood;
  const auto at = *rc::gen::inRange<std::size_t>(0, text.size());
  const auto length = *rc::gen::inRange<std::size_t>(0, 40);
  const std::string piece = text.substr(at, length);
  const std::string other = *rc::gen::element<std::string>(
      "", piece + piece, "[", "'''", "\"", "\xff", "= {", "@{", "[[case]]\n", "9e999", "{}", "[[]]",
      *rc::gen::string<std::string>());
  text.replace(at, std::min(length, text.size() - at), other);
  const auto suite = read_suite(text, "f.toml");
  if (!suite) {
    RC_ASSERT(suite.error().line().find('\n') == std::string::npos);
    RC_ASSERT(suite.error().where.starts_with("f.toml"));
  }
}

TEST(ParseGoal, Forms) {
  EXPECT_EQ(parse_goal("<= 1")->bound, 1);
  EXPECT_EQ(parse_goal(" >=0.9 ")->kind, GoalKind::kAtLeast);
  EXPECT_EQ(parse_goal("within 15 %")->bound, 15);
  for (const char* none : {"", "1", "<= ", "<= x", "<= 1%", "within", "<= inf", ">= nan", "< 1"}) {
    EXPECT_FALSE(parse_goal(none).has_value()) << none;
  }
}

}  // namespace
}  // namespace assay::suite
