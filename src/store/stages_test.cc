#include "store/stages.h"

#include "store/run_reader.h"
#include "store/run_writer.h"
#include "store/testing/runs.h"
#include "store/testing/runs_fixture.h"

namespace assay::store {
namespace {

using ::testing::HasSubstr;
using testing::line_of;
using testing::record;
using testing::run_of;

class StagesTest : public testing::RunsTest {
 protected:
  // "1:4 2:2": number and current run of every stage.
  std::string stages() {
    std::string text;
    const auto runs = *live_runs(store_);
    for (const RunRecord& run : runs) {
      text += fmt::format("{}{}:{}", text.empty() ? "" : " ", run.stage, run.id);
    }
    return text;
  }
};

TEST_F(StagesTest, ARepeatedStageTakesItsPredecessorsNumber) {
  record(store_, "prepare raw=1 -> a=1 b=1");
  record(store_, "train a=1 -> model=1");
  record(store_, "prepare-again raw=2 -> b=2 a=2");  // the same files, in any order, by any command
  EXPECT_EQ(stages(), "1:3 2:2");
  EXPECT_EQ(head_of(store_, 1)->stage, 1);
  EXPECT_TRUE(head_of(store_, 1)->superseded);
}

TEST_F(StagesTest, OtherFilesOrAnotherDirectoryMakeAnotherStage) {
  record(store_, "x in=1 -> a=1");
  record(store_, "y in=1 -> a=1 b=1");
  record(store_, "z other=1 -> a=1");
  record(store_, "x /project/in=1 -> /project/a=1", "/elsewhere");
  EXPECT_EQ(stages(), "1:1 2:2 3:3 4:4");
}

TEST_F(StagesTest, TheSameCommandIsTheSameStageWhateverItDoes) {
  record(store_, "make in=1 -> a=1 b=1");
  record(store_, "make");
  EXPECT_EQ(stages(), "1:2");
}

TEST_F(StagesTest, ANameIsAStagesName) {
  RunRecord first = run_of("x -> a=1"), second = run_of("y in=1 -> b=1");
  first.name = second.name = "train";
  ASSERT_TRUE(record_run(store_, first));
  ASSERT_TRUE(record_run(store_, second));
  EXPECT_EQ(stages(), "1:2");
}

TEST_F(StagesTest, ARequestedStageIsRepeatedInAnyCase) {
  record(store_, "x -> a=1");
  record(store_, "x2 -> b=1");
  RunRecord again = run_of("x2 --k 3 in=1 -> other=1");
  again.repeats = 1;
  ASSERT_TRUE(record_run(store_, again));
  EXPECT_EQ(stages(), "1:3 2:2");
}

TEST_F(StagesTest, ChangesInPlaceAreStagesOfTheirOwn) {
  record(store_, "seq -> log=1");
  record(store_, "echo -> ~log<1=2");
  record(store_, "sed log=2 -> ~log=3");
  record(store_, "tr log=3 -> ~log=4");
  EXPECT_EQ(stages(), "1:1 2:2 3:3 4:4");
  record(store_, "echo -> ~log<4=5");  // the same command again
  EXPECT_EQ(stages(), "1:1 2:5 3:3 4:4");
  record(store_, "seq2 -> log=6");  // made anew, as the first
  EXPECT_EQ(stages(), "1:6 2:5 3:3 4:4");
}

RunRecord with_streams(RunRecord run, std::vector<std::string> redirects) {
  run.redirects = std::move(redirects);
  return run;
}

TEST_F(StagesTest, WhereALogGoesIsNoPartOfAStage) {
  for (const char* description : {"a in=1 -> x=1 log=1", "b in=1 -> y=1 ~log=2", "c -> ~log=3"}) {
    ASSERT_TRUE(record_run(store_, with_streams(run_of(description), {"1>/project/log"})));
  }
  EXPECT_EQ(stages(), "1:1 2:2 3:3");
  // The same with another log, by another command.
  ASSERT_TRUE(
      record_run(store_, with_streams(run_of("a2 in=1 -> x=2 log2=1"), {"2>>/project/log2"})));
  EXPECT_EQ(stages(), "1:4 2:2 3:3");
}

TEST_F(StagesTest, StandardInputIsPartOfACommand) {
  for (const std::string name : {"a", "b", "a"}) {
    ASSERT_TRUE(record_run(store_, with_streams(run_of(fmt::format("sort {0}=1 -> {0}.s=1", name)),
                                                {"0</project/" + name, "1>/project/x"})));
  }
  EXPECT_EQ(stages(), "1:3 2:2");
}

TEST_F(StagesTest, WithoutFilesTheCommandIsTheStage) {
  record(store_, "check a=1");
  record(store_, "check a=2");
  record(store_, "check --all a=2");
  EXPECT_EQ(stages(), "1:2 2:3");
}

TEST_F(StagesTest, DeletedFilesAreNoPartOfIt) {
  record(store_, "x -> a=1 -old");
  record(store_, "x -> ~a=2");
  EXPECT_EQ(stages(), "1:2");
}

TEST_F(StagesTest, OnlySuccessMakesAStage) {
  for (const RunStatus status : {RunStatus::kFailed, RunStatus::kInterrupted}) {
    RunRecord run = run_of("x -> a=1");
    run.status = status;
    ASSERT_TRUE(record_run(store_, run));
  }
  EXPECT_EQ(stages(), "");
}

TEST_F(StagesTest, AFailedRunIsAnAttemptAtTheStageOfItsCommandOrName) {
  const auto attempts = [this] {
    std::string text;
    const auto all = *failed_attempts(store_);
    for (const auto& [stage, run] : all) text += fmt::format("{}:{} ", stage, run.id);
    return text;
  };
  const auto fail = [this](const std::string& description, const std::string& name = "") {
    RunRecord run = run_of(description);
    run.name = name;
    run.status = RunStatus::kFailed;
    run.exit_code = 2;
    ASSERT_TRUE(record_run(store_, run));
  };
  fail("a in=1 -> x=1");
  EXPECT_EQ(attempts(), "");
  record(store_, "a in=1 -> x=1");
  RunRecord named = run_of("b in=1 -> y=1");
  named.name = "train";
  ASSERT_TRUE(record_run(store_, named));
  EXPECT_EQ(attempts(), "") << "before it";
  fail("a in=2");
  fail("c in=2");
  EXPECT_EQ(attempts(), "1:4 ") << "c is no stage";
  fail("a");
  fail("other", "train");
  EXPECT_EQ(attempts(), "1:6 2:7 ");
  record(store_, "a in=3 -> x=3");
  EXPECT_EQ(attempts(), "2:7 ");
}

TEST_F(StagesTest, ANumberNamesItsCurrentRun) {
  EXPECT_THAT(line_of(stage_run(store_, 1)), HasSubstr("no run has succeeded yet"));
  record(store_, "x --k 1 -> a=1");
  record(store_, "x --k 2 -> a=2");
  const auto run = stage_run(store_, 1);
  ASSERT_TRUE(run) << line_of(run);
  EXPECT_THAT(run->command, ::testing::ElementsAre("x", "--k", "2"));
  EXPECT_EQ(run->outputs.size(), 1U);
  EXPECT_THAT(line_of(stage_run(store_, 2)), HasSubstr("@2: there is no such stage"));
}

TEST_F(StagesTest, LeavingGivesTheStageBack) {
  record(store_, "x -> a=1");
  record(store_, "x -> a=2");
  ASSERT_TRUE(leave_stage(store_.database(), 2));
  EXPECT_EQ(stages(), "1:1");
  ASSERT_TRUE(leave_stage(store_.database(), 1));
  EXPECT_EQ(stages(), "");
}

}  // namespace
}  // namespace assay::store
