// From cases that ran to labelled figures: the label follows from the kind of the case.
#include "suite/outcome.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "base/testing/temp_dir.h"
#include "suite/collective.h"
#include "suite/outcome_text.h"
#include "suite/read_suite.h"
#include "suite/run_cases.h"

namespace assay::suite {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr const char* kCases = R"toml(title = "cases of every kind"

[[case]]
name = "network"
collective = "all_reduce 1GB h100-sxm-8"

[[case]]
name = "prints"
repeat = 3
command = "pwd > here; echo x >> ../count; printf 'took %s\n' $(wc -l < ../count)"

[[case]]
name = "breaks"
command = "echo it broke >&2; exit 7"

[[case]]
name = "hangs"
command = "sleep 60"
limit = "300ms"

[[case]]
name = "needy"
needs = { gpus = 64 }
command = "echo took 5"

[[case]]
name = "long"
quick = false
command = "echo took 6"

[[case]]
name = "wordless"
command = "echo nothing"

[[table]]
title = "t"
note = "they ran whole days"
chart = { x = "GPUs", ideal = "linear" }
value = "regex:took ([0-9]+)"
figures = [
  { what = "planned", x = 8, line = "a", published = 400, planned = { case = "network", value = "json:bus_gb_s" }, why = "not here" },
  { what = "noted", measured = { case = "prints", value = "regex:took ([0-9]+)", note = "twice as wide" }, planned = { case = "network", value = "json:bus_gb_s" } },
  { what = "measured", x = 16, line = "a", published = 2, measured = "prints", goal = "<= 3" },
  { what = "failed", measured = "breaks", goal = "<= 3" },
  { what = "late", measured = "hangs" },
  { what = "impossible", measured = "needy", recorded = { value = 9, low = 8, high = 9.5, note = "half as many", machine = "m", date = 2026-01-02, commit = "c", command = "x" }, goal = ">= 10" },
  { what = "long", measured = "long" },
  { what = "not found", measured = "wordless" },
  { what = "of another", measured = { case = "long", value = "regex:took ([0-9]+)", per = { case = "prints", value = "regex:took ([0-9]+)" }, times = 10 } },
  { what = "of one that breaks", measured = { case = "long", value = "regex:took ([0-9]+)", per = { case = "breaks", value = "regex:took ([0-9]+)" } } },
  { what = "of one without it", measured = { case = "long", value = "regex:took ([0-9]+)", per = { case = "wordless", value = "regex:took ([0-9]+)" } } },
  { what = "without its interval", measured = { case = "long", value = "regex:took ([0-9]+)", low = "regex:from ([0-9]+)", high = "regex:to ([0-9]+)", note = "one pair" }, goal = "<= 9" },
  { what = "may be missing", measured = { case = "wordless", value = "json:watts", missing = "not reported" } },
]
)toml";

class SuiteRun : public ::testing::Test {
 protected:
  SuiteOutcome run(const fs::path& directory, bool quick = false) {
    auto suite = read_suite(kCases, "cases.toml");
    EXPECT_TRUE(suite.has_value()) << suite.error().line();
    auto made = SuiteFolder::create(directory, *std::move(suite), quick, host_);
    EXPECT_TRUE(made.has_value()) << made.error().line();
    folder_ = *std::move(made);
    return go_on();
  }
  SuiteOutcome go_on() {
    const auto interrupts = compare::Interrupts::watch();
    auto runs = run_cases(*folder_, host_, *interrupts);
    EXPECT_TRUE(runs.has_value()) << runs.error().line();
    return outcome_of(*folder_, *std::move(runs));
  }
  static const FigureOutcome& figure(const SuiteOutcome& outcome, const std::string& what) {
    for (const FigureOutcome& each : outcome.tables[0].figures) {
      if (each.figure->what == what) return each;
    }
    ADD_FAILURE() << what;
    return outcome.tables[0].figures[0];
  }
  [[nodiscard]] fs::path place() const { return directory_.path() / "r"; }

  base::testing::TempDir directory_;
  // Commands like these need no separate project.
  SuiteHost host_{.program = "/bin/true", .path = "/bin:/usr/bin"};
  std::optional<SuiteFolder> folder_;
};

TEST_F(SuiteRun, LabelsFollowTheKindOfCase) {
  const SuiteOutcome outcome = run(place());
  const FigureOutcome& planned = figure(outcome, "planned");
  ASSERT_EQ(planned.ours.size(), 2U);
  EXPECT_EQ(planned.ours[0].label, FigureLabel::kImpossible);
  EXPECT_EQ(planned.ours[1].label, FigureLabel::kPlanned);
  EXPECT_GT(*planned.ours[1].value, 300);

  const OurValue& measured = figure(outcome, "measured").ours[0];
  EXPECT_EQ(measured.label, FigureLabel::kMeasured);
  EXPECT_EQ(measured.value, 2);  // of 1, 2, 3
  EXPECT_EQ(measured.low, 1);
  EXPECT_EQ(measured.high, 3);

  // A remark about one of our values is not shown for the other.
  EXPECT_EQ(figure(outcome, "noted").ours[0].remark,
            "median of 3, smallest to largest; twice as wide");
  EXPECT_EQ(figure(outcome, "noted").ours[1].remark, "");

  // A figure that could lie anywhere passes no goal.
  const OurValue& lacks_interval = figure(outcome, "without its interval").ours[0];
  EXPECT_EQ(lacks_interval.value, 6);
  EXPECT_TRUE(lacks_interval.lacks_interval);
  EXPECT_THAT(lacks_interval.remark, HasSubstr("no interval: "));
  EXPECT_THAT(lacks_interval.remark, HasSubstr("; one pair"));

  const OurValue& failed = figure(outcome, "failed").ours[0];
  EXPECT_EQ(failed.label, FigureLabel::kFailed);
  EXPECT_FALSE(failed.value.has_value());
  EXPECT_THAT(failed.remark, HasSubstr("exited with 7: it broke; its output is in "));
  EXPECT_THAT(figure(outcome, "late").ours[0].remark,
              HasSubstr("reached its time limit of 300 ms"));

  const FigureOutcome& impossible = figure(outcome, "impossible");
  EXPECT_EQ(impossible.ours[0].remark, "needs 64 GPUs; this machine has none");
  EXPECT_EQ(impossible.ours[1].label, FigureLabel::kRecorded);
  EXPECT_EQ(impossible.ours[1].remark, "m, 2026-01-02, c; half as many");
  EXPECT_EQ(figure(outcome, "long").ours[0].value, 6);
  EXPECT_EQ(figure(outcome, "not found").ours[0].label, FigureLabel::kFailed);
  EXPECT_EQ(figure(outcome, "of another").ours[0].value, 30);  // 6 by the median of 1, 2, 3
  EXPECT_EQ(figure(outcome, "of one that breaks").ours[0].label, FigureLabel::kFailed);
  EXPECT_THAT(figure(outcome, "of one that breaks").ours[0].remark, HasSubstr("exited with 7"));
  EXPECT_EQ(figure(outcome, "of one without it").ours[0].label, FigureLabel::kFailed);
  EXPECT_EQ(figure(outcome, "may be missing").ours[0].label, FigureLabel::kImpossible);
  EXPECT_EQ(figure(outcome, "may be missing").ours[0].remark, "not reported");

  ASSERT_EQ(outcome.goals.size(), 4U);
  EXPECT_EQ(outcome.goals[0].verdict, IntervalVerdict::kPass);
  EXPECT_EQ(outcome.goals[1].verdict, IntervalVerdict::kNotJudged);
  EXPECT_EQ(outcome.goals[2].verdict, IntervalVerdict::kFail);  // by what was recorded
  EXPECT_EQ(outcome.goals[3].verdict, IntervalVerdict::kInconclusive);
  EXPECT_TRUE(outcome.any_failed());
}

TEST_F(SuiteRun, OnlyWhatRanHereIsCalledMeasured) {
  const base::Json json = to_json(run(place()));
  for (const base::Json& figure : json["figures"]) {
    for (const base::Json& ours : figure["ours"]) {
      const bool from_command = figure["what"] == "measured" || figure["what"] == "long" ||
                                figure["what"] == "of another" ||
                                figure["what"] == "without its interval" ||
                                (figure["what"] == "noted" && ours["remark"] != "");
      EXPECT_EQ(ours["label"] == "measured", from_command) << figure.dump();
      if (ours["label"] != "measured" && ours["label"] != "planned" &&
          ours["label"] != "recorded") {
        EXPECT_TRUE(ours["value"].is_null()) << figure.dump();
      }
    }
  }
  for (const base::Json& row : json["tables"][0]["rows"]) {
    EXPECT_EQ(row.size(), json["tables"][0]["columns"].size());
  }
}

TEST_F(SuiteRun, TablesHaveTheirNoteTheirNumbersAndTheirChart) {
  const base::Json json = to_json(run(place()));
  const base::Json& table = json["tables"][0];
  EXPECT_EQ(table["note"], "they ran whole days");
  EXPECT_EQ(json["failed"], true);
  for (const base::Json& row : table["rows"]) {
    if (row[0] == "measured") {
      EXPECT_EQ(row[1], base::Json::parse(R"({"text": "2", "value": 2})"));
      EXPECT_EQ(row[2], base::Json::parse(R"({"text": "2 [1, 3]", "value": 2})"));
    }
    if (row[0] == "failed") {
      EXPECT_EQ(row[1], "—");
      EXPECT_EQ(row[2], "—");
    }
    if (row[3] == "recorded") {
      EXPECT_EQ(row[2]["text"], "9 [8, 9.5]");
      EXPECT_EQ(row[5], "m, 2026-01-02, c; half as many");
    }
  }
  // Published, planned and measured figures are separate lines; the ideal begins at the first.
  const base::Json& chart = table["chart"];
  EXPECT_EQ(chart["x"], "GPUs");
  EXPECT_EQ(chart["ideal"]["per_x"], 50.0);
  std::map<std::string, base::Json> lines;
  for (const base::Json& line : chart["lines"]) lines[line["name"]] = line["points"];
  EXPECT_EQ(lines["a, published"], base::Json::parse("[[8, 400], [16, 2]]"));
  EXPECT_EQ(lines["a, planned"][0][0], 8);
  EXPECT_EQ(lines["a, measured"], base::Json::parse("[[16, 2, 1, 3]]"));
  EXPECT_EQ(lines.size(), 3U);
}

TEST_F(SuiteRun, AQuickRunIsMarkedAndItsMeasurementsAreNotJudged) {
  const SuiteOutcome outcome = run(place(), true);
  EXPECT_EQ(figure(outcome, "long").ours[0].label, FigureLabel::kLeftOut);
  const OurValue& measured = figure(outcome, "measured").ours[0];
  EXPECT_EQ(label_text(outcome, measured), "measured (quick)");
  EXPECT_EQ(outcome.goals[0].verdict, IntervalVerdict::kNotJudged);
  EXPECT_EQ(to_json(outcome)["quick"], true);
}

TEST_F(SuiteRun, WhatIsDoneStaysAndWhatFailedIsTriedAgain) {
  run(place());
  // A changed output shows whether a case runs again: a finished case must not.
  std::ofstream(place() / "out/prints-2.out") << "took 77\n";
  folder_ = *SuiteFolder::open(place(), host_);
  const SuiteOutcome again = go_on();
  EXPECT_EQ(figure(again, "measured").ours[0].high, 77);
  EXPECT_EQ(figure(again, "failed").ours[0].label, FigureLabel::kFailed);

  SuiteHost other = host_;
  other.machine.hostname = "elsewhere";
  const auto refused = SuiteFolder::open(place(), other);
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().line(), HasSubstr("was begun on another machine"));
  std::ofstream(place() / "cases/prints.json") << "[1]";
  std::ofstream(place() / "cases/long.json") << R"({"state":3,"wall_s":{},"outputs":[1]})";
  EXPECT_EQ(figure(go_on(), "long").ours[0].value, 6);
  const auto second = SuiteFolder::create(place(), *read_suite(kCases, "s.toml"), false, host_);
  ASSERT_FALSE(second.has_value());
  EXPECT_THAT(second.error().line(), HasSubstr("already contains a suite run"));
}

TEST(Judge, ByWhereTheIntervalLies) {
  const Goal most{.kind = GoalKind::kAtMost, .bound = 1};
  const Goal least{.kind = GoalKind::kAtLeast, .bound = 1};
  const Goal within{.kind = GoalKind::kWithin, .bound = 10};
  const auto ours = [](double value, double low, double high) {
    return OurValue{.label = FigureLabel::kMeasured, .value = value, .low = low, .high = high};
  };
  EXPECT_EQ(judge(most, ours(0.5, 0, 1), {}), IntervalVerdict::kPass);
  EXPECT_EQ(judge(most, ours(0.5, 0, 1.1), {}), IntervalVerdict::kInconclusive);
  EXPECT_EQ(judge(most, ours(2, 1.1, 3), {}), IntervalVerdict::kFail);
  EXPECT_EQ(judge(least, ours(2, 1, 3), {}), IntervalVerdict::kPass);
  EXPECT_EQ(judge(least, ours(2, 0.5, 3), {}), IntervalVerdict::kInconclusive);
  EXPECT_EQ(judge(least, ours(0.5, 0, 0.9), {}), IntervalVerdict::kFail);
  EXPECT_EQ(judge(within, ours(109, 50, 200), 100), IntervalVerdict::kPass);
  EXPECT_EQ(judge(within, ours(111, 100, 112), 100), IntervalVerdict::kFail);
  EXPECT_EQ(judge(within, ours(89, 0, 0), 100), IntervalVerdict::kFail);
  EXPECT_EQ(judge(within, ours(1, 1, 1), {}), IntervalVerdict::kNotJudged);
  // A plan is judged by its value alone, a measurement by its interval.
  OurValue lacks_interval{.label = FigureLabel::kMeasured, .value = 100, .lacks_interval = true};
  for (const Goal& goal : {most, least, within}) {
    EXPECT_EQ(judge(goal, lacks_interval, 100), IntervalVerdict::kInconclusive);
  }
  lacks_interval.label = FigureLabel::kPlanned;
  EXPECT_EQ(judge(within, lacks_interval, 100), IntervalVerdict::kPass);
  EXPECT_EQ(judge(most, {}, {}), IntervalVerdict::kNotJudged);
}

TEST(Judge, AGoalOfSizeIsMissedOnEitherSide) {
  const auto goal = parse_goal("|x| <= 0.5");
  ASSERT_TRUE(goal.has_value()) << goal.error().line();
  const auto judged = [&](double low, double high) {
    return judge(
        *goal,
        OurValue{
            .label = FigureLabel::kMeasured, .value = (low + high) / 2, .low = low, .high = high},
        {});
  };
  EXPECT_EQ(judged(-0.5, 0.5), IntervalVerdict::kPass);
  EXPECT_EQ(judged(-1.6, -1.4), IntervalVerdict::kFail);
  EXPECT_EQ(judged(1.4, 1.6), IntervalVerdict::kFail);
  EXPECT_EQ(judged(-0.6, 0), IntervalVerdict::kInconclusive);
  EXPECT_EQ(judged(0, 0.6), IntervalVerdict::kInconclusive);
  EXPECT_EQ(judged(-9, 9), IntervalVerdict::kInconclusive);
}

TEST(CollectiveJson, AsThePlannerHasItOrARefusal) {
  const auto json = collective_json("all_reduce 1GB h100-sxm-8 8");
  ASSERT_TRUE(json.has_value()) << json.error().line();
  // A bus moves 2 (n-1)/n of the bytes in that time.
  const double seconds = (*json)["seconds"].get<double>();
  EXPECT_NEAR((*json)["bus_gb_s"].get<double>(), 1e9 * 2 * 7 / 8 / seconds / 1e9, 1e-6);
  // Overrides of the cluster: more nodes, and a network with another rate.
  const auto all_of = [](const std::string& text) {
    const auto made = collective_json(text);
    EXPECT_TRUE(made.has_value()) << made.error().line();
    return *made;
  };
  const base::Json four = all_of("all_reduce 1GB p4d-24xlarge 32 cluster.nodes=4");
  EXPECT_EQ(four["ranks"], 32);
  EXPECT_EQ(all_of("all_reduce 1GB p4d-24xlarge cluster.nodes=4"), four);
  const base::Json slow =
      all_of("all_reduce 1GB p4d-24xlarge 32 cluster.nodes=4 cluster.network.bandwidth=100Gb/s");
  EXPECT_NEAR(slow["seconds"].get<double>() / four["seconds"].get<double>(), 4, 0.2);
  for (const char* none :
       {"all_reduce 1GB p4d-24xlarge 32", "all_reduce 1GB p4d-24xlarge cluster.nodes=4 32",
        "all_reduce 1GB p4d-24xlarge 32 cluster.nods=4", "all_reduce 1GB cluster.nodes=4", "",
        "all_reduce", "all_reduce 1GB", "some_reduce 1GB h100-sxm-8", "all_reduce x h100-sxm-8",
        "all_reduce 1GB h100-sxm-8 1", "all_reduce 1GB h100-sxm-8 9",
        "all_reduce 1GB p4d-24xlarge cluster.devices_per_node=1", "all_reduce 0B h100-sxm-8",
        "all_reduce 1GB h100-sxm-8 cluster.extends=p4d-24xlarge", "all_reduce 1GB h100-sxm-8 8 8",
        "all_reduce 1GB llama3-8b", "all_reduce 1GB no-such"}) {
    EXPECT_FALSE(collective_json(none).has_value()) << none;
  }
}

TEST(OutcomeText, NumbersAreWrittenForPeople) {
  const FigureTable table;
  Figure figure;
  figure.published = 1411.6;
  EXPECT_EQ(published_text(table, figure), "1,411.6");
  figure.published = 5.2e-5;
  EXPECT_EQ(published_text(table, figure), "0.000052");
  OurValue ours{.label = FigureLabel::kRecorded, .value = 6495.1};
  EXPECT_EQ(value_text(table, ours), "6,495.1");
  ours.label = FigureLabel::kPlanned;
  EXPECT_EQ(value_text(table, ours), "6,495");
  Goal goal;
  goal.text = "within 15%";
  EXPECT_EQ(goal_text(goal), "within 15 %");
  goal.text = "<= 1";
  EXPECT_EQ(goal_text(goal), "<= 1");
}

}  // namespace
}  // namespace assay::suite
