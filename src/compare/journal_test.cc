#include "compare/journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/testing/temp_dir.h"

namespace assay::compare {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

Experiment every_setting() {
  Experiment e;
  e.arms = {{"A", "true"}, {"B", "false \"x\"", {"K=v"}, "sync", "rm -f x"}};
  e.metric = *parse_metric("regex:x ([0-9]+)");
  e.steps = *parse_steps("json:a,b");
  e.quality = *parse_metric("json:loss");
  e.stop = {0.5, 7, 99, base::Seconds(12.5)};
  e.judgement = {2.5, true};
  e.warm_up = 3;
  e.timeout = base::Seconds(60);
  e.seed = (std::uint64_t{1} << 53U) - 1;
  e.directory = "/tmp";
  return e;
}

class JournalFile : public ::testing::Test {
 protected:
  [[nodiscard]] fs::path folder() const { return directory_.path() / "x/y"; }
  [[nodiscard]] fs::path file() const { return folder() / "runs.jsonl"; }
  void append(const std::string& text) const { std::ofstream(file(), std::ios::app) << text; }
  base::testing::TempDir directory_;
};

TEST(ExperimentJson, ComesBackAsItWas) {
  const auto json = to_json(every_setting());
  const auto back = experiment_from_json(base::Json::parse(json.dump()));
  ASSERT_TRUE(back) << back.error().line();
  EXPECT_EQ(to_json(*back), json);
  for (const auto& [key, value] : json.items()) {
    auto without = json;
    without.erase(key);
    EXPECT_FALSE(experiment_from_json(without)) << key;
  }
}

TEST_F(JournalFile, WhatIsAddedIsThereAgain) {
  const ArmRun run{.run = 1,
                   .block = 0,
                   .arm = 2,
                   .started = "2026-11-15T00:00:00.000Z",
                   .wall_s = 0.1,
                   .cpu_s = 1.0 / 3,
                   .value = 7,
                   .quality = 2.5,
                   .steps = {{1, 0.5, 0}, {2, 0.25, 0}},
                   .startup_s = 0.01};
  {
    auto journal = Journal::create(folder(), every_setting());
    ASSERT_TRUE(journal) << journal.error().line();
    ASSERT_TRUE(journal->add(run));
    ASSERT_TRUE(journal->add(HostMark{0, 3, {"hot"}}));
  }
  append("{\"run\": 2, \"blo");  // killed while it wrote
  Measured measured;
  {
    const auto journal = Journal::open(folder(), measured);
    ASSERT_TRUE(journal) << journal.error().line();
  }
  ASSERT_EQ(measured.runs.size(), 1U);
  EXPECT_EQ(to_json(measured.runs[0]), to_json(run));
  EXPECT_EQ(measured.marks.at(0).what, std::vector<std::string>{"hot"});
  EXPECT_EQ(measured.next_block(), 1);
  EXPECT_EQ(to_json(measured.experiment), to_json(every_setting()));
  // The half line is gone, so the next one is whole.
  Measured again;
  ASSERT_TRUE(Journal::open(folder(), again)->add(run));
  EXPECT_TRUE(Journal::open(folder(), again));
  EXPECT_EQ(again.runs.size(), 2U);
}

TEST_F(JournalFile, AnalysesSessionsFailuresAndRulesAreThereAgain) {
  const SessionRecord session{
      "2026-11-15T00:00:00Z", "h", "m", "k", "d", "0.1.0 abc", "def", {"load"}};
  const FailedRun failed{4, 1, 1, "2026-11-15T00:00:00.000Z", "exited with 7"};
  const InterimAnalysis analysis{
      .run = 3, .pairs = 1, .stop = StopReason::kTime, .planned = true, .alpha_share = 0.25};
  RuleChange change{.pairs = 1};
  change.to = {{0.125, 3, 77, base::Seconds(5)}, {7.5, false}};
  {
    auto journal = Journal::create(folder(), every_setting());
    ASSERT_TRUE(journal->add(session));
    ASSERT_TRUE(journal->add(failed));
    ASSERT_TRUE(journal->add(analysis));
    ASSERT_TRUE(journal->add(change));
  }
  const auto read = read_journal(folder());
  ASSERT_TRUE(read) << read.error().line();
  EXPECT_EQ(read->sessions.at(0), session);
  EXPECT_EQ(to_json(read->failures.at(0)), to_json(failed));
  EXPECT_EQ(read->analyses.at(0), analysis);
  EXPECT_EQ(read->changes.at(0).from, (Rules{every_setting().stop, every_setting().judgement}));
  EXPECT_EQ(read->changes.at(0).to, change.to);
  // The last change counts.
  EXPECT_EQ(read->experiment.judgement, change.to.judgement);
  EXPECT_EQ(read->experiment.stop, change.to.stop);
  EXPECT_EQ(read->next_run(), 5);
}

// Journals of 0.1 have other names for sessions and interim analyses.
TEST_F(JournalFile, OldJournalsAreRead) {
  { ASSERT_TRUE(Journal::create(folder(), every_setting())); }
  std::ofstream(file(), std::ios::app)
      << R"({"sitting":{"begun":"2026-11-15T00:00:00Z","host":"h","machine":"m","kernel":"k",)"
      << R"("driver":"","assay":"0.1.0 abc","project":"","preflight":[]}})"
      << "\n"
      << R"({"look":{"run":3,"pairs":1,"stopped":"the time was over","planned":true,"share":0.25}})"
      << "\n"
      << R"({"rules":{"pairs":1,"half_width_pct":1,"min_pairs":2,"max_pairs":9,"max_time_s":1,)"
      << R"("margin_pct":7,"more_is_better":false}})"
      << "\n";
  Measured measured;
  const auto journal = Journal::open(folder(), measured);
  ASSERT_TRUE(journal) << journal.error().line();
  ASSERT_EQ(measured.sessions.size(), 1U);
  EXPECT_EQ(measured.sessions.front().kernel, "k");
  ASSERT_EQ(measured.analyses.size(), 1U);
  EXPECT_EQ(
      measured.analyses.front(),
      (InterimAnalysis{
          .run = 3, .pairs = 1, .stop = StopReason::kTime, .planned = true, .alpha_share = 0.25}));
  EXPECT_EQ(measured.experiment.judgement, (Judgement{.margin_pct = 7}));
  EXPECT_EQ(stop_reason_from_text("all pairs were made"), StopReason::kPairs);
}

// A process that is killed at its very start leaves an empty file, or a part of the first line.
TEST_F(JournalFile, OneThatWasKilledAtItsStartIsBegunAgain) {
  const std::string first = base::json_line({{"experiment", to_json(every_setting())}});
  for (const std::string& text : {std::string(), first.substr(0, 200)}) {
    fs::remove_all(folder());
    fs::create_directories(folder());
    append(text);
    EXPECT_FALSE(has_begun(folder()));
    const auto read = read_journal(folder());
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code, base::ExitCode::kUnfit);
    EXPECT_THAT(read.error().line(), HasSubstr("no complete first line"));
    Measured measured;
    EXPECT_THAT(Journal::open(folder(), measured).error().line(), HasSubstr("first line"));
    EXPECT_EQ(fs::file_size(file()), text.size()) << "a journal that is not read is not changed";
    ASSERT_TRUE(Journal::create(folder(), every_setting()));
    EXPECT_TRUE(has_begun(folder()));
    const auto again = read_journal(folder());
    ASSERT_TRUE(again) << again.error().line();
    EXPECT_EQ(to_json(again->experiment), to_json(every_setting()));
  }
}

TEST_F(JournalFile, TwoDoNotWriteOne) {
  const auto journal = Journal::create(folder(), every_setting());
  ASSERT_TRUE(journal);
  Measured measured;
  EXPECT_THAT(Journal::open(folder(), measured).error().line(), HasSubstr("another assay compare"));
  EXPECT_THAT(Journal::create(folder(), every_setting()).error().line(),
              HasSubstr("already contains an experiment"));
}

TEST_F(JournalFile, WhatIsNoJournalIsRefused) {
  Measured measured;
  EXPECT_EQ(Journal::open(directory_.path(), measured).error().code, base::ExitCode::kUsage);
  fs::create_directories(folder());
  for (const char* text : {"", "x\n", "{}\n", "{\"experiment\": {}}\n", "[1]\n", "\n"}) {
    std::ofstream(file()) << text;
    EXPECT_FALSE(Journal::open(folder(), measured)) << text;
  }
  const std::string first = base::json_line({{"experiment", to_json(every_setting())}});
  const std::string run =
      R"({"run":1,"block":0,"arm":%,"started":"","wall_s":1,"cpu_s":1,"value":1})";
  for (const char* arm : {"9", "-1", "\"A\""}) {
    std::string line = run;
    line.replace(line.find('%'), 1, arm);
    std::ofstream(file()) << first << line << "\n";
    EXPECT_FALSE(Journal::open(folder(), measured)) << arm;
  }
  for (const char* line :
       {R"({"look":{}})", R"({"analysis":{}})", R"({"look":3})", R"({"session":[]})",
        R"({"rules":{"pairs":1}})",
        R"({"failed":{"run":1,"block":0,"arm":9,"started":"","what":""}})",
        R"({"rules":{"pairs":1,"half_width_pct":-1,"min_pairs":2,"max_pairs":1,"max_time_s":1,)"
        R"("margin_pct":1,"more_is_better":false}})"}) {
    std::ofstream(file()) << first << line << "\n";
    EXPECT_FALSE(Journal::open(folder(), measured)) << line;
  }
}

}  // namespace
}  // namespace assay::compare
