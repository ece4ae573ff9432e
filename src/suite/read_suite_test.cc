// Suite files: what is in one, and that whatever is wrong with one is told with file and line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "suite/catalogue.h"
#include "suite/read_figures.h"
#include "suite/suite.h"

namespace assay::suite {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kGood = R"toml(title = "what it is"
reproduces = "somebody's page"

[settings]
steps = 40
train = "train --steps @{steps}"

[quick]
steps = 3

[record.card]
machine = "a card"
date = 2026-11-15
commit = "abc1234"
command = "bench"

[[step]]
name = "plan"
plan = "demo"

[[step]]
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
  { what = "one", published = 1.5, planned = "plan", measured = { step = "run", value = "regex:([0-9]+)" }, recorded = { value = 2, from = "card" }, goal = "within 10%" },
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
  ASSERT_EQ(suite->steps.size(), 2U);
  const Step& run = suite->steps[1];
  EXPECT_EQ(run.kind, StepKind::kCommand);
  EXPECT_EQ(run.needs.gpus, 2);
  EXPECT_TRUE(run.needs.nvlink);
  EXPECT_EQ(run.needs.programs, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(run.limit, base::Seconds(120));
  EXPECT_EQ(run.repeat, 3);
  EXPECT_EQ(*filled_in(*suite, run, false), "train --steps 40 --of x");
  EXPECT_EQ(*filled_in(*suite, run, true), "train --steps 3 --of x");
  const Figure& one = suite->tables[0].figures[0];
  EXPECT_EQ(one.published, 1.5);
  EXPECT_EQ(one.planned->times, 1000);
  EXPECT_EQ(one.planned->value.text(), "json:a");
  EXPECT_EQ(one.measured->times, 1);  // a place of its own begins anew
  EXPECT_EQ(one.recorded->commit, "abc1234");
  EXPECT_EQ(one.recorded->date, "2026-11-15");
  EXPECT_EQ(one.goal->kind, GoalKind::kWithin);
  EXPECT_EQ(suite->tables[0].figures[1].published_as, "< 5");
}

TEST(ReadSuite, WhatDividesIsInTheSameOutputOrInAnother) {
  const auto same = read_suite(
      replaced(kGood, "planned = \"plan\"", "planned = { step = \"plan\", per = \"json:b\" }"),
      "f");
  ASSERT_TRUE(same.has_value()) << same.error().line();
  EXPECT_EQ(same->tables[0].figures[0].planned->per->text(), "json:b");
  EXPECT_EQ(same->tables[0].figures[0].planned->per_step, "");
  EXPECT_EQ(same->tables[0].figures[0].planned->times, 1000);
  std::string text = replaced(kGood, "name = \"run\"",
                              "name = \"other\"\nplan = \"demo\"\n[[step]]\nname = \"run\"");
  text = replaced(text, "times = 1000",
                  "times = 1000\nper = { step = \"other\", value = \"json:b\" }");
  const auto other = read_suite(text, "f");
  ASSERT_TRUE(other.has_value()) << other.error().line();
  EXPECT_EQ(other->tables[0].figures[0].planned->per_step, "other");
  EXPECT_EQ(other->tables[0].figures[0].measured->per_step, "");  // a place of its own begins anew
}

struct BadSuite {
  const char* from;
  const char* to;
  const char* line;  // what the error begins with
};

TEST(ReadSuite, WhatIsWrongIsToldWithFileAndLine) {
  const std::vector<BadSuite> bad = {
      {"plan = \"demo\"", "plan = 3", "f.toml:19: plan is 3, not a string with something in it"},
      {"plan = \"demo\"", "plam = \"demo\"", "f.toml:17: step 'plan' does nothing; give it"},
      {"plan = \"demo\"", "plan = \"demo\"\ncommand = \"x\"",
       "f.toml:20: step 'plan' does two things"},
      {"plan = \"demo\"", "plan = \"demo\"\nrepeat = 2", "f.toml:17: step 'plan' is no command"},
      {"name = \"plan\"", "name = \"../plan\"", "f.toml:17: '../plan' cannot be a step's name"},
      {"name = \"run\"", "name = \"plan\"", "f.toml:21: there is a step 'plan' already"},
      {"limit = \"2min\"", "limit = \"soon\"", "f.toml:26: limit: "},
      {"limit = \"2min\"", "limit = \"0s\"", "f.toml:21: step 'run' has no time"},
      {"limit = \"2min\"", "limits = \"2min\"",
       "f.toml:26: unknown key 'limits'; did you mean 'limit'?"},
      {"repeat = 3", "repeat = 0", "f.toml:21: repeat = 0 is not from 1 to 1000"},
      {"gpus = 2", "gpus = -2", "f.toml:25: gpus is -2, not a count"},
      {"gpus = 2", "gpu = 2", "f.toml:25: unknown key 'gpu'"},
      {"@{what}", "@{waht}",
       "f.toml:23: step 'run' uses '@{waht}', which is no setting; did you mean 'what'?"},
      {"@{what}", "@{what", "f.toml:23: step 'run' uses '@{what', which does not end"},
      {"steps @{steps}", "steps @{train}", "f.toml:23: the setting 'train' goes round in circles"},
      {"steps = 3", "stops = 3", "f.toml: [quick] changes 'stops', which is no setting"},
      {"planned = \"plan\"", "planned = \"plam\"",
       "f.toml:35: there is no step 'plam'; did you mean 'plan'?"},
      {"step = \"run\"", "step = \"plan\"",
       "f.toml:35: step 'plan' (plan) computes and measures nothing"},
      {"planned = \"plan\"", "planned = \"run\"",
       "f.toml:35: step 'run' (command) measures and plans nothing"},
      {"planned = \"plan\"", "planned = { step = \"plan\", per = 3 }",
       "f.toml:35: per is 3, not a place, or { step"},
      {"planned = \"plan\"", "planned = { step = \"plan\", per = { step = \"plan\" } }",
       "f.toml:35: per is a table, not a place, or { step"},
      {"planned = \"plan\"",
       "planned = { step = \"plan\", per = { step = \"plam\", value = \"json:b\" } }",
       "f.toml:35: there is no step 'plam'; did you mean 'plan'?"},
      {"planned = \"plan\"",
       "planned = { step = \"plan\", per = { step = \"run\", value = \"json:b\" } }",
       "f.toml:35: step 'run' (command) measures and plans nothing"},
      {"planned = \"plan\"",
       "planned = { step = \"plan\", per = { step = \"plan\", value = \"wall\" } }",
       "f.toml:35: does not say where the figure is"},
      {"planned = \"plan\"", "planned = { step = \"plan\", per = \"stored:loss\" }",
       "f.toml:35: per: 'stored:loss' is in no step's output"},
      {"value = \"json:a\"\n", "", "f.toml:34: does not say where the figure is"},
      {"regex:([0-9]+)", "regex:([0-9]+", "f.toml:35: value: '([0-9]+' is no regular expression"},
      {"regex:([0-9]+)", "stored:loss", "f.toml:35: value: 'stored:loss' is in no step's output"},
      {"from = \"card\"", "from = \"cord\"", "f.toml:35: there is no [record.cord]"},
      {"from = \"card\"", "machine = \"m\", date = 2026-01-02, commit = \"c\", command = \"x\"",
       "f.toml:11: no figure is from [record.card]; remove it, or name it"},
      {"value = 2, from", "value = 2, low = 1, from",
       "f.toml:35: a recorded interval has two ends"},
      {"value = 2, from", "value = 2, low = 3, high = 1, from",
       "f.toml:35: a recorded interval has two ends"},
      {"unit = \"ms\"", "unit = \"ms\"\nchart = { ideal = \"same\" }",
       "f.toml:32: a chart says what lies along it"},
      {"unit = \"ms\"", "unit = \"ms\"\nchart = { x = \"n\", ideal = \"best\" }",
       "f.toml:32: ideal: 'best' is no ideal; same or linear"},
      {"unit = \"ms\"", "unit = \"ms\"\nchart = 3", "f.toml:32: chart is 3, not a table"},
      {"published = 1.5", "published = 1.5, line = \"a\"",
       "f.toml:35: 'one' is on a line without a place"},
      {"commit = \"abc1234\"\n", "",
       "f.toml:34: a recorded figure does not say where it comes from"},
      {"date = 2026-11-15", "date = \"today\"",
       "f.toml:13: date is the string 'today', not a date"},
      {"within 10%", "about 10", "f.toml:35: goal: 'about 10' is no goal"},
      {"published = 1.5, ", "", "f.toml:35: 'within' is said of a published number"},
      {", why = \"there is no such machine\"", "",
       "f.toml:36: nothing of ours stands beside 'two'"},
      {"what = \"one\"", "what = \"one\", why = \"no\"",
       "f.toml:35: 'one' is measured: there is no why"},
      {"title = \"what it is\"\n", "", "f.toml: a suite has a title"},
      {"title = \"t\"\n", "", "f.toml:29: a table has a title"},
      {"[[table]]", "[table]", "f.toml:29: table is a table, not a list: [[table]]"},
      {"[[step]]", "[[step]", "f.toml:17: "},
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
      replaced(kGood, "steps = 40",
               "steps = \"@{b}@{b}@{b}@{b}@{b}@{b}\"\nb = "
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
      "", piece + piece, "[", "'''", "\"", "\xff", "= {", "@{", "[[step]]\n", "9e999", "{}", "[[]]",
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
