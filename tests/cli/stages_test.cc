// Stages from the command line: what is one, running one again, what connects them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/json.h"
#include "base/testing/temp_dir.h"
#include "support/process.h"

namespace assay {
namespace {

using base::Json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class StagesCli : public ::testing::Test {
 protected:
  void SetUp() override { shell("$ASSAY init -q"); }
  support::ProcessResult shell(const std::string& script) {
    auto outcome = support::run(
        {{"sh", "-c", "ASSAY='" + support::program() + "'; " + script}, "", project_.path()});
    EXPECT_LT(outcome.exit_code, 3) << script << ": " << outcome.err;
    return outcome;
  }
  Json json(const std::string& arguments) {
    return Json::parse(shell("$ASSAY " + arguments + " --json 2>/dev/null").out);
  }
  // "1:sort 2:tac": number and command of every current stage.
  std::string stages() {
    std::string text;
    const Json all = json("status")["stages"];
    for (const Json& stage : all) {
      text += (text.empty() ? "" : " ") + std::to_string(stage["stage"].get<int>()) + ":" +
              std::to_string(stage["run"].get<int>());
    }
    return text;
  }
  std::string content(const std::string& name) {
    std::ifstream file(project_.path() / name);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  base::testing::TempDir project_;
};

TEST_F(StagesCli, ACopyIsNotWhereItsOriginCameFrom) {
  shell("seq 100 > raw.csv; mkdir work; $ASSAY run -- cp raw.csv work/raw.csv");
  shell("$ASSAY run -- cp raw.csv work/raw.csv");
  EXPECT_THAT(shell("$ASSAY lineage work/raw.csv --up").out,
              AllOf(HasSubstr("─ raw.csv"), HasSubstr("from outside"), Not(HasSubstr("run 1"))));
  shell("cp work/raw.csv moved; $ASSAY run -- sh -c 'wc -l < moved > n'");
  EXPECT_THAT(shell("$ASSAY lineage n --up").out,
              HasSubstr("moved  b44a37de · 292 B  from outside, same content as work/raw.csv"));
  EXPECT_THAT(shell("$ASSAY reproduce n").out, HasSubstr("unchanged, same content as "));
  EXPECT_EQ(json("reproduce n")["stages"].size(), 1U);
}

TEST_F(StagesCli, ChangesInPlaceAreStagesAndAreMadeAgain) {
  shell("$ASSAY run -- sh -c 'seq 3 > log'; $ASSAY run -- sh -c 'echo x >> log'");
  shell("$ASSAY run -- sh -c 'sed -i s/1/9/ log'; $ASSAY run -- sh -c 'wc -l log > n'");
  EXPECT_EQ(stages(), "1:1 2:2 3:3 4:4");
  EXPECT_EQ(json("gc --dry-run")["runs"].size(), 0U);
  const auto made = shell("$ASSAY reproduce n --run --directory copy");
  EXPECT_EQ(made.exit_code, 0) << made.out << made.err;
  EXPECT_EQ(json("reproduce n")["stages"].size(), 4U);
  shell("$ASSAY run -- seq 5 > l2; $ASSAY run -- echo more >> l2");
  shell("$ASSAY run -- dd if=/dev/zero of=l2 bs=1 count=1 conv=notrunc status=none");
  EXPECT_EQ(json("reproduce l2")["stages"].size(), 3U);
  EXPECT_EQ(shell("$ASSAY reproduce l2 --run --directory copy2").exit_code, 0);
}

TEST_F(StagesCli, ASharedLogMakesNoStageAndNoDifference) {
  shell("echo 1 > in; $ASSAY run -- sh -c 'cat in > a; date +%N' > log.txt 2>&1");
  shell("$ASSAY run -- sh -c 'cat a > b; date +%N' > log.txt 2>&1");
  shell("$ASSAY run -- sh -c 'cat b > c; date +%N' >> log.txt 2>&1");
  EXPECT_EQ(stages(), "1:1 2:2 3:3");
  shell("$ASSAY run -- sh -c 'cat b > c; date +%N' > other.txt");
  EXPECT_EQ(stages(), "1:1 2:2 3:4");
  const auto made = shell("$ASSAY reproduce b --run --directory copy");
  EXPECT_EQ(made.exit_code, 0) << made.out << made.err;
}

TEST_F(StagesCli, ALogThatGrowsMakesNothingStale) {
  for (const std::string sign : {">", ">>"}) {
    shell("rm -f out; echo 1 > in; sh -c '\"$1\" run -- cp in out; echo done' - \"$ASSAY\" " +
          sign + " log");
    const auto status = shell("$ASSAY status");
    EXPECT_EQ(status.exit_code, 0) << status.out;
  }
}

TEST_F(StagesCli, RunAgainIsAsItWas) {
  shell(
      "printf 'b\\na\\n' > in; mkdir -p d/e; cd d;"
      " $ASSAY run --name sorted --build -- sort < ../in > out; echo z > e/x");
  shell("printf 'c\\nb\\n' > in; cd d/e; $ASSAY run @1");
  EXPECT_EQ(content("d/out"), "b\nc\n");
  const Json run = json("show last");
  EXPECT_EQ(run["run"]["name"], "sorted");
  EXPECT_EQ(run["run"]["build"], true);
  EXPECT_EQ(run["run"]["stage"], 1);
  EXPECT_EQ(std::filesystem::path(run["run"]["directory"].get<std::string>()).filename(), "d");
  shell("$ASSAY run -- echo n >> appended; $ASSAY run @2");
  EXPECT_EQ(content("appended"), "n\nn\n");
  EXPECT_EQ(stages(), "1:2 2:4");
  shell("$ASSAY run --tracer ptrace --leave-out '*.tmp' -- sh -c 'echo 1 > a.tmp; echo 2 > b'");
  shell("$ASSAY run @3");
  EXPECT_EQ(json("show last")["run"]["tracer"], "ptrace");
  EXPECT_EQ(json("show last")["outputs"].size(), 1U);
}

TEST_F(StagesCli, TheLastPatternThatMatchesWins) {
  const auto outputs = [&](const std::string& options) {
    shell("$ASSAY run " + options + " -- sh -c 'echo 1 > a.log; echo 1 > b.log'");
    return json("show last")["outputs"].size();
  };
  EXPECT_EQ(outputs("--leave-out '*.log' --keep a.log"), 1U);
  EXPECT_EQ(outputs("--keep a.log --leave-out '*.log'"), 0U);
  EXPECT_EQ(outputs("--keep a.log --leave-out '*.log' --keep '*.log'"), 2U);
}

TEST_F(StagesCli, EveryPatternIsExplainedByItself) {
  shell("$ASSAY run --leave-out '*.a' --leave-out '*.b' -- sh -c 'echo 1 > x.a; echo 1 > x.b'");
  EXPECT_THAT(shell("$ASSAY show --explain").out,
              AllOf(HasSubstr("it matches your pattern *.a\n  x.a\n"),
                    HasSubstr("it matches your pattern *.b\n  x.b\n")));
}

TEST_F(StagesCli, AFilterFileIsReadLikeGits) {
  shell("mkdir secret deep deep/secret; printf '/secret/\\n\\\\#hash\\n' > .assayignore");
  shell("$ASSAY run -- sh -c 'echo 1 > secret/a; echo 1 > deep/secret/b; echo 1 > \"#hash\"'");
  const Json outputs = json("show last")["outputs"];
  ASSERT_EQ(outputs.size(), 1U) << outputs;
  EXPECT_THAT(outputs[0]["path"].get<std::string>(), HasSubstr("deep/secret/b"));
}

TEST_F(StagesCli, AStageWhoseFileAnotherStageReplacedIsNotCalledFresh) {
  shell("echo 1 > a; echo 2 > b; $ASSAY run -q -- cat a > out; $ASSAY run -q -- cat b > out");
  shell("$ASSAY run -q -- cp a log; $ASSAY run -q -- sh -c 'echo 3 >> log'");
  const Json status = json("status");
  EXPECT_EQ(status["stale"], false);
  std::vector<std::string> states;
  for (const Json& stage : status["stages"]) states.push_back(stage["state"]);
  EXPECT_THAT(states, ::testing::ElementsAre("replaced", "fresh", "fresh", "fresh"));
  EXPECT_EQ(status["stages"][0]["reasons"][0]["cause"], "output-replaced");
  const auto text = shell("$ASSAY status");
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_THAT(text.out, HasSubstr("stage 2 has replaced out"));
  for (const char* verb : {"refresh", "refresh --dry-run"}) {
    EXPECT_THAT(shell(std::string("$ASSAY ") + verb).out,
                HasSubstr("nothing is stale; another stage has replaced the output of stage 1"));
  }
}

TEST_F(StagesCli, AnAttemptThatFailedAfterTheLastSuccessIsShown) {
  const std::string command = "$ASSAY run -q -- sh -c 'cp in out; exit $CODE'; ";
  shell("echo 1 > in; export CODE=0; " + command + "CODE=2; " + command);
  Json stage = json("status")["stages"][0];
  EXPECT_EQ(stage["run"], 1);
  EXPECT_EQ(stage["stale"], false);
  EXPECT_EQ(stage["failed_attempt"],
            (Json{{"run", 2}, {"status", "failed"}, {"exit_code", 2}, {"signal", nullptr}}));
  const auto text = shell("$ASSAY status");
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_THAT(text.out, HasSubstr("note: stage 1 was tried again: run 2, failed: 2; run 1 is the "
                                  "last that was done\n"));
  shell("export CODE=0; " + command);
  EXPECT_EQ(json("status")["stages"][0]["failed_attempt"], nullptr);
  EXPECT_THAT(shell("$ASSAY status").out, Not(HasSubstr("tried")));
}

}  // namespace
}  // namespace assay
