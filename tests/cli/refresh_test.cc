// assay refresh: what status calls stale is run again, in an order that works.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/testing/temp_dir.h"
#include "support/shell_project.h"

namespace assay {
namespace {

using base::Json;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class Refresh : public support::ShellProject {
 protected:
  std::vector<int> stale_by_status() {
    std::vector<int> stages;
    const Json status = json("status");
    for (const Json& stage : status["stages"]) {
      if (stage["stale"]) stages.push_back(stage["stage"]);
    }
    return stages;
  }
  std::vector<int> dry_run(const std::string& target = "") {
    std::vector<int> stages;
    const Json plan = json("refresh --dry-run " + target);
    for (const Json& stage : plan["stages"]) {
      stages.push_back(stage["stage"]);
    }
    return stages;
  }
  // "1 done, 2 unneeded"
  static std::string outcomes(const Json& report) {
    std::string text;
    for (const Json& stage : report["stages"]) {
      text += (text.empty() ? "" : ", ") + std::to_string(stage["stage"].get<int>()) + " " +
              stage["outcome"].get<std::string>();
    }
    return text;
  }
};

TEST_F(Refresh, RunsWhatStatusCallsStaleAndLeavesNothingStale) {
  // The reader is the first stage: its number is no order.
  shell("echo 0 > raw; cp raw mid; $A run -- sh -c 'sed s/x/y/ mid > end'");
  shell("$A run -- sh -c 'sed s/^/x/ raw > mid'; $A run -- sh -c 'wc -c < end > size'");
  shell("$A run -- sh -c 'echo other > alone'");
  EXPECT_EQ(shell("$A refresh -q").exit_code, 0);
  EXPECT_EQ(content("end"), "y0\n");
  shell("echo 12 > raw");
  EXPECT_THAT(stale_by_status(), ElementsAre(1, 2, 3));
  EXPECT_THAT(dry_run(), ElementsAre(2, 1, 3));
  EXPECT_EQ(content("end"), "y0\n") << "a dry run runs nothing";
  const Json report = json("refresh");
  EXPECT_EQ(outcomes(report), "2 done, 1 done, 3 done");
  EXPECT_EQ(report["fresh"], true);
  EXPECT_EQ(content("size"), "4\n");
  EXPECT_THAT(stale_by_status(), IsEmpty());
  EXPECT_EQ(shell("$A refresh").out, "everything is fresh\n");
  const Json status = json("status");
  for (const Json& stage : status["stages"]) {
    for (const Json& done : report["stages"]) {
      if (done["stage"] == stage["stage"]) {
        EXPECT_EQ(done["run"], stage["run"]);
      }
    }
  }
}

// The commands name the original, which still exists.
TEST_F(Refresh, ACopiedProjectIsRefreshedWithoutTheOriginal) {
  shell(
      "mkdir p; cd p; $A init -q; echo 1 > in; $A run -q -- cp $PWD/in $PWD/out; cd ..;"
      " cp -r p q; echo EDITED > q/in; echo 7 > p/in");
  EXPECT_EQ(shell("cd q && $A refresh -q").exit_code, 0);
  EXPECT_EQ(content("q/out"), "EDITED\n");
  EXPECT_EQ(content("p/out"), "1\n");
  EXPECT_EQ(shell("cd q && $A status -q").exit_code, 0);
  EXPECT_EQ(shell("cd p && $A status -q").exit_code, 1);
}

// Running it again with an empty standard input would leave less.
TEST_F(Refresh, AStageThatReadAPipeIsNotRepeated) {
  shell("echo e > extra; printf 'precious\\n' | $A run -q -- sh -c 'cat - extra > out'");
  EXPECT_EQ(content("out"), "precious\ne\n");
  const Json run = json("show 1");
  EXPECT_EQ(run["run"]["complete"], false);
  EXPECT_EQ(run["missed"][0]["what"], "stdin");
  shell("echo f > extra");
  for (const char* verb : {"refresh", "run @1", "reproduce out --run"}) {
    const auto refused = shell(std::string("$A ") + verb + " < /dev/null");
    EXPECT_NE(refused.exit_code, 0) << verb;
    EXPECT_THAT(refused.err + refused.out, HasSubstr("what came through it was not recorded"));
    EXPECT_EQ(content("out"), "precious\ne\n") << verb;
  }
  EXPECT_EQ(shell("echo new | $A run -q @1").exit_code, 0);
  EXPECT_EQ(content("out"), "new\nf\n");
}

TEST_F(Refresh, APipeThatNobodyReadIsNoInput) {
  for (const char* tracer : {"preload", "ptrace"}) {
    shell(std::string("echo unread | $A run -q --tracer ") + tracer + " -- sh -c 'echo 1 > out'");
    EXPECT_EQ(json("show last")["run"]["complete"], true) << tracer;
    // Through a duplicate, in a separate process.
    shell(std::string("echo read | $A run -q --tracer ") + tracer +
          " -- sh -c '(exec 7<&0 0</dev/null; cat <&7 > out2)'");
    EXPECT_EQ(json("show last")["run"]["complete"], false) << tracer;
  }
}

// As running all stages in order does.
TEST_F(Refresh, AStageThatOverwritesAFileFollowsTheOneBefore) {
  shell(
      "echo a > a; echo b > b; $A run -q -- cp a out; $A run -q -- cp b out;"
      " $A run -q -- cp out final; echo c > a");
  EXPECT_THAT(dry_run(), ElementsAre(1, 2, 3));
  EXPECT_EQ(outcomes(json("refresh")), "1 done, 2 done, 3 unneeded");
  EXPECT_EQ(content("final"), "b\n");
  EXPECT_THAT(stale_by_status(), IsEmpty());
  shell("$A run -q @1");
  EXPECT_THAT(shell("$A status").out, HasSubstr("stage 1 wrote out again"));
  EXPECT_EQ(shell("$A refresh -q").exit_code, 0);
  EXPECT_EQ(content("out"), "b\n");
}

// The shell opens the file, and `run @N` does instead of it.
TEST_F(Refresh, ARedirectionThatOverwritesAFileFollowsTheOneBefore) {
  shell("echo a > a; echo b > b; echo 1 > in; $A run -q -- cat a > out; $A run -q -- cat b > out");
  shell("$A run -q -- cp in other; $A run -q -- cat a > out; echo 2 > in");
  EXPECT_THAT(shell("$A status").out, HasSubstr("stage 1 wrote out again"));
  EXPECT_EQ(outcomes(json("refresh")), "2 done, 3 done");
  EXPECT_EQ(content("out"), "b\n");
  EXPECT_EQ(content("other"), "2\n");
  EXPECT_THAT(stale_by_status(), IsEmpty());
  shell("echo c > a");
  const auto both = shell("$A refresh --json");
  EXPECT_EQ(outcomes(Json::parse(both.out)), "1 done, 2 done");
  EXPECT_THAT(both.err, Not(HasSubstr("is not redirected")));
  EXPECT_EQ(json("show 1")["run"]["redirects"], json("show 7")["run"]["redirects"]);
  EXPECT_EQ(content("out"), "b\n");
  shell("$A run -q -- cat a > out; rm out");
  EXPECT_EQ(shell("$A refresh -q").exit_code, 0) << "there is nothing to lose";
  EXPECT_EQ(content("out"), "b\n");
  // No run left this.
  shell("echo mine > out");
  for (const char* options : {"", " --keep-going", " @1"}) {
    const auto refused = shell(std::string("echo d >> a; $A refresh") + options);
    EXPECT_EQ(refused.exit_code, 1) << options;
    EXPECT_THAT(refused.err + refused.out, HasSubstr("out was changed by hand and would be"));
    EXPECT_EQ(content("out"), "mine\n") << options;
  }
  EXPECT_EQ(shell("$A refresh --overwrite").exit_code, 0);
  EXPECT_EQ(content("out"), "b\n");
}

TEST_F(Refresh, AFailedStageIsNamedWithItsRun) {
  shell(
      "echo a > in; $A run -q -- sh -c 'cp in x; grep -q a in'; $A run -q -- sh -c 'cat x > y';"
      " echo b > in");
  const auto outcome = shell("$A refresh --keep-going");
  EXPECT_THAT(outcome.out, HasSubstr("1    3  failed: 1"));
  EXPECT_THAT(outcome.out, HasSubstr("blocked: stage 1 failed"));
  EXPECT_THAT(outcome.out, HasSubstr("next: assay show 3"));
  shell(
      "$A pop -q; echo 'kill -9 $$' > s.sh; echo 1 > go; $A run -q -- sh -c '[ -e stop ] && kill"
      " -9 $$; cat go > z'; touch stop; echo 2 > go");
  EXPECT_THAT(shell("$A refresh @3").out, HasSubstr("failed: signal 9"));
}

TEST_F(Refresh, NothingIsFreshWhereNoRunHasSucceeded) {
  shell("echo 1 > in; $A run -q -- sh -c 'cat in > out; exit 3'");
  const auto outcome = shell("$A refresh");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.out, HasSubstr("no run has succeeded yet"));
  EXPECT_THAT(shell("$A lineage out").out, HasSubstr("unchanged since run 1 (failed)"));
  EXPECT_THAT(shell("$A lineage out").out, HasSubstr("(run 1, failed)"));
  EXPECT_THAT(shell("$A reproduce out").out, HasSubstr("run 1: it failed"));
}

TEST_F(Refresh, WhatAnInterruptedRunLeftIsMarked) {
  // The command's parent is the process that records it.
  shell("echo 1 > in; $A run -q -- sh -c 'cat in > out; kill -9 $PPID'");
  const Json run = json("show 1")["run"];
  EXPECT_EQ(run["status"], "interrupted");
  EXPECT_EQ(run["duration_known"], false);
  EXPECT_THAT(shell("$A show 1").out, ContainsRegex("took +at least [0-9]"));
  EXPECT_THAT(shell("$A log").out, ContainsRegex("interrupted +at least [0-9]"));
  EXPECT_THAT(shell("$A lineage out").out, HasSubstr("unchanged since run 1 (interrupted)"));
  EXPECT_EQ(json("lineage out")["on_disk"]["failed"], true);
  EXPECT_THAT(shell("$A reproduce out").out, HasSubstr("run 1: it was interrupted"));
}

TEST_F(Refresh, ALogThatNothingWasAppendedToIsNoOutput) {
  shell(
      "echo earlier > err.log; echo 1 > in; $A run -q -- cp in mid 2>> err.log;"
      " touch err.log; $A run -q -- cp mid out 2>> err.log");
  for (const char* run : {"show 1", "show 2"}) EXPECT_EQ(json(run)["outputs"].size(), 1U) << run;
  EXPECT_THAT(shell("$A lineage mid --down").out, Not(HasSubstr("err.log")));
}

// sort opens its output before it reads, and a file that was just made has the same times after.
TEST_F(Refresh, AFileSortedInPlaceIsAnInputHoweverNewItIs) {
  for (const char* text : {"b\na 1", "b\na 2", "b\na 3", "b\na 4", "b\na 5", "b\na 6"}) {
    shell("printf '" + std::string(text) + "\n' > f; $A run -q -- sort -o f f");
    EXPECT_EQ(json("show last")["inputs"].size(), 1U) << text;
  }
}

TEST_F(Refresh, InAPipeCommandsAreWhole) {
  const std::string word(150, 'w');
  shell("$A run -q -- sh -c 'cat in > out; : " + word +
        " end' ; echo 1 > in;"
        " $A run -q -- sh -c 'cat in > out; : " +
        word + " end'; $A label last good; echo 2 > in");
  for (const char* verb : {"log", "status", "label", "refresh --dry-run", "lineage out", "dag"}) {
    EXPECT_THAT(shell(std::string("$A ") + verb).out, HasSubstr(word + " end")) << verb;
  }
}

TEST_F(Refresh, AVerbWithAWrongArgumentIsNoRun) {
  shell("$A run -q -- true");
  EXPECT_EQ(shell("$A report nothere").exit_code, 64);
  EXPECT_EQ(json("log")["runs"].size(), 1U);
}

// The exit code is the same.
TEST_F(Refresh, AVerbThatFailedOnItsInputIsAFailedRun) {
  shell(
      "for i in $(seq 100); do echo '{\"text\": \"a\"}'; done > rows.jsonl; echo '{' >> "
      "rows.jsonl");
  EXPECT_EQ(shell("$A data tokenize rows.jsonl -o x.tokens --frobnicate").exit_code, 64);
  EXPECT_EQ(shell("$A data tokenize nothere.jsonl -o x.tokens 2> log").exit_code, 64);
  EXPECT_EQ(json("log")["runs"].size(), 0U);
  EXPECT_EQ(shell("$A data tokenize rows.jsonl -o x.tokens").exit_code, 64);
  const Json run = json("show last");
  EXPECT_EQ(run["run"]["status"], "failed");
  EXPECT_EQ(run["run"]["exit_code"], 64);
  EXPECT_THAT(run["inputs"].dump(), HasSubstr("rows.jsonl"));
}

TEST_F(Refresh, StopsWhereTheSameWasMadeAgain) {
  shell("echo a > in; $A run -- sh -c 'tr a-z A-Z < in | head -1 > up'");
  shell("$A run -- sh -c 'cat up > copy'; $A run -- sh -c 'cat copy > copy2'; echo b >> in");
  EXPECT_THAT(dry_run(), ElementsAre(1, 2, 3));
  EXPECT_EQ(outcomes(json("refresh")), "1 done, 2 unneeded, 3 unneeded");
  EXPECT_EQ(shell("$A status").exit_code, 0);
}

TEST_F(Refresh, AFailureStopsItOrWhatDependsOnIt) {
  shell("echo a > in; echo a > ok; $A run -- sh -c 'cp in x; grep -q a in'");
  shell("$A run -- sh -c 'cat x > y'; $A run -- sh -c 'cat ok > z'; echo b > in; echo b > ok");
  const auto stopped = shell("$A refresh --json");
  EXPECT_EQ(stopped.exit_code, 1);
  Json report = Json::parse(stopped.out);
  EXPECT_EQ(outcomes(report), "1 failed, 2 not run, 3 not run");
  EXPECT_THAT(stopped.err, HasSubstr("; --keep-going runs the stages that do not depend on it\n"));
  EXPECT_EQ(report["fresh"], false);
  EXPECT_EQ(content("z"), "a\n");
  const auto went_on = shell("$A refresh --keep-going --json");
  EXPECT_EQ(went_on.exit_code, 1);
  report = Json::parse(went_on.out);
  EXPECT_EQ(outcomes(report), "1 failed, 2 blocked, 3 done");
  EXPECT_THAT(went_on.err, Not(HasSubstr("--keep-going")));
  EXPECT_EQ(content("z"), "b\n");
  std::vector<int> stale;
  for (const Json& stage : report["stale"]) stale.push_back(stage["stage"]);
  EXPECT_EQ(stale, stale_by_status());
  EXPECT_THAT(stale, ElementsAre(1, 2));
}

// Each of the two waits for the other.
TEST_F(Refresh, IndependentStagesRunAtTheSameTime) {
  base::testing::TempDir meeting;  // outside the project, where looking at files counts for nothing
  const std::string at = meeting.path().string() + "/";
  const auto stage = [&](const std::string& mine, const std::string& other) {
    return "sh -c 'cat in > " + mine + "; mkdir " + at + mine + "; for i in $(seq 1000); do [ -e " +
           at + other + " ] && exit 0; sleep 0.01; done; exit 9'";
  };
  shell("echo 1 > in; mkdir " + at + "b; $A run -- " + stage("a", "b"));
  shell("rmdir " + at + "b; $A run -- " + stage("b", "a") + "; rmdir " + at + "*; echo 2 > in");
  const auto outcome = shell("$A refresh -j 2 --json");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
  EXPECT_EQ(Json::parse(outcome.out)["stages"].size(), 2U);
  EXPECT_THAT(outcome.err, HasSubstr("@1 sh -c"));
}

TEST_F(Refresh, LinesOfStagesThatRunTogetherAreLabelled) {
  shell("echo 1 > in; $A run -- sh -c 'cat in > a; echo from a; printf end'");
  shell("$A run -- sh -c 'cat in > b; echo from b'; echo 2 > in");
  const auto outcome = shell("$A refresh -j 2");
  EXPECT_THAT(outcome.err, HasSubstr("@1 | from a\n"));
  EXPECT_THAT(outcome.err, HasSubstr("@1 | end\n"));
  EXPECT_THAT(outcome.err, HasSubstr("@2 | from b\n"));
}

TEST_F(Refresh, StagesKeepTheirRedirections) {
  shell("echo b > in; $A run -- sort < in > out; echo a >> in; $A refresh > log 2>&1");
  EXPECT_EQ(content("out"), "a\nb\n");
  EXPECT_EQ(shell("$A status").exit_code, 0);
  EXPECT_THAT(content("log"), HasSubstr("everything is fresh"));
}

TEST_F(Refresh, WhatWasEditedByHandIsNotOverwritten) {
  shell("echo b > in; $A run -- cat in > out; $A run -- sh -c 'cat in > other'");
  shell("echo mine > out; echo c > in");
  const auto refused = shell("$A refresh");
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("assay: stage 1: "));
  EXPECT_THAT(refused.err, HasSubstr("out was changed by hand and would be overwritten"));
  EXPECT_THAT(shell("$A status").out, HasSubstr("next: mv out out.edited && assay run @1\n"));
  EXPECT_EQ(content("other"), "b\n");
  EXPECT_EQ(outcomes(json("refresh --keep-going")), "1 blocked, 2 done");
  EXPECT_EQ(content("out"), "mine\n");
  EXPECT_EQ(shell("rm out; $A refresh").exit_code, 0);
  EXPECT_EQ(content("out"), "c\n");
  shell("echo mine > out");
  EXPECT_EQ(shell("$A refresh --overwrite").exit_code, 0);
  EXPECT_EQ(content("out"), "c\n");
}

TEST_F(Refresh, AnEditIsOverwrittenOnlyOnRequest) {
  shell("echo b > in; $A run -- sh -c 'cat in > out'; $A run -- sh -c 'cat out > end'");
  shell("echo mine > out");
  const auto refused = shell("$A refresh");
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("out was changed by hand and would be overwritten"));
  EXPECT_EQ(content("out"), "mine\n");
  EXPECT_THAT(dry_run(), ElementsAre(1, 2)) << "as status says";
  EXPECT_EQ(shell("$A refresh --overwrite").exit_code, 0);
  EXPECT_EQ(content("out"), "b\n");
}

// Removing the file, as for other stages, would leave the stage without its input.
TEST_F(Refresh, AnEditOfAFileThatIsChangedInPlaceIsMadeAgainByTheStageThatMakesIt) {
  for (const char* made : {"cp a log", "cat a > log"}) {
    shell("rm -rf .assay log*; $A init -q; echo 1 > a; $A run -q -- " + std::string(made));
    shell("$A run -q -- sh -c 'echo 1 >> log'; $A run -q -- sed -i s/1/9/ log; echo hand > log");
    const auto refused = shell("$A refresh");
    EXPECT_EQ(refused.exit_code, 1);
    EXPECT_THAT(refused.err, HasSubstr("log was changed by hand and would be changed; keep a copy, "
                                       "remove it, and `assay run @1`, which makes it"));
    EXPECT_THAT(shell("$A status").out,
                HasSubstr("log: changed by hand; running stage 3 again changes it\n\n"
                          "next: mv log log.edited && assay run @1 && assay refresh"));
    EXPECT_EQ(content("log"), "hand\n");
    const auto advised = shell("mv log log.edited && $A run -q @1 && $A refresh");
    EXPECT_EQ(advised.exit_code, 0) << advised.out << advised.err;
    EXPECT_EQ(content("log"), "9\n9\n");
  }
}

TEST_F(Refresh, AnEditOfAFileThatNoStageMakesIsNotToBeRemoved) {
  shell("echo 1 > log; $A run -q -- sed -i s/1/9/ log; echo 11 > log");
  EXPECT_THAT(shell("$A status").out,
              HasSubstr("next: cp log log.edited && assay run @1 --overwrite\n"));
  const auto refused = shell("$A refresh");
  EXPECT_THAT(refused.err, HasSubstr("keep a copy and use --overwrite"));
  EXPECT_THAT(refused.err, Not(HasSubstr("remove")));
  EXPECT_EQ(shell("$A refresh --overwrite").exit_code, 0);
  EXPECT_EQ(content("log"), "91\n");
}

// `make` did without it once: it is still an edit that the next one would overwrite.
TEST_F(Refresh, AnEditThatARunHasLeftAloneIsKept) {
  shell("printf 'gen.h: spec\\n\\tcat spec > gen.h\\n' > Makefile; echo 1 > spec");
  shell("$A run -- make -s; sleep 0.02; echo mine > gen.h; $A run -- make -s");
  EXPECT_EQ(shell("$A status").exit_code, 0) << "making it once more would not help";
  shell("sleep 0.02; echo 2 > spec");
  const auto refused = shell("$A refresh");
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("gen.h was changed by hand and would be overwritten"));
  EXPECT_EQ(content("gen.h"), "mine\n");
  EXPECT_EQ(shell("$A refresh --overwrite").exit_code, 0);
  EXPECT_EQ(content("gen.h"), "2\n");
}

// The plan was made before the edit.
TEST_F(Refresh, AnEditMadeWhileAnEarlierStageRunsIsKept) {
  shell(
      "echo 1 > in; $A run -- sh -c 'cat in > a; [ ! -e wait ] || { touch started; "
      "for i in $(seq 1000); do [ -e go ] && exit 0; sleep 0.01; done; exit 9; }'");
  shell("$A run -- sh -c 'cat a > b'; $A run -- sh -c 'cat in > c'; echo 2 > in; touch wait");
  const auto outcome = shell(
      "$A refresh --json & r=$!; for i in $(seq 1000); do [ -e started ] && break; sleep 0.01; "
      "done; echo mine > b; touch go; wait $r");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(content("b"), "mine\n");
  EXPECT_THAT(outcome.err, HasSubstr("b was changed by hand and would be overwritten"));
  EXPECT_EQ(outcomes(Json::parse(outcome.out)), "1 done, 2 blocked, 3 not run");
}

// The file on disk is the last stage's, but the first one writes it too.
TEST_F(Refresh, AnEditOfAFileThatTwoStagesWriteIsKept) {
  shell("echo 1 > in; $A run -- sh -c 'cat in > x'; $A run -- sh -c 'echo other > x'");
  shell("echo 2 > in; echo mine > x");
  EXPECT_EQ(outcomes(json("refresh --keep-going")), "1 blocked, 2 blocked");
  EXPECT_EQ(content("x"), "mine\n");
  EXPECT_EQ(shell("$A refresh @1").exit_code, 1);
  EXPECT_EQ(content("x"), "mine\n");
  EXPECT_EQ(shell("$A refresh --overwrite").exit_code, 0);
  EXPECT_EQ(content("x"), "other\n");
}

TEST_F(Refresh, WhatAFailedRunLeftIsNoEdit) {
  shell("echo : > script; $A run -- sh -c 'cat script > out; sh script'");
  shell("echo 'echo half > out; exit 1' > script");
  EXPECT_EQ(shell("$A refresh").exit_code, 1);
  EXPECT_EQ(content("out"), "half\n");
  const auto again = shell("echo 'exit 0' > script; $A refresh");
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(content("out"), "exit 0\n");
}

TEST_F(Refresh, ATargetIsMadeWithWhatItNeeds) {
  shell("echo 1 > in; $A run -- sh -c 'cat in > a'; $A run -- sh -c 'cat a > b'");
  shell("$A run --name third -- sh -c 'cat a > c'; echo 2 > in");
  EXPECT_THAT(dry_run("b"), ElementsAre(1, 2));
  EXPECT_THAT(dry_run("@1"), ElementsAre(1));
  EXPECT_THAT(dry_run("third"), ElementsAre(1, 3));
  EXPECT_THAT(dry_run("b c"), ElementsAre(1, 2, 3));
  EXPECT_EQ(shell("$A refresh b").exit_code, 0);
  EXPECT_EQ(content("b"), "2\n");
  EXPECT_EQ(content("c"), "1\n");
  EXPECT_THAT(stale_by_status(), ElementsAre(3));
}

TEST_F(Refresh, ChangesInPlaceAreRepeatedInTheirOrder) {
  shell("$A run -- sh -c 'seq 3 > log'; $A run -- sh -c 'echo x >> log'");
  shell("$A run -- sh -c 'sed -i s/x/9/ log'; $A run -- sh -c 'wc -l < log > n'; $A run @1");
  EXPECT_EQ(dry_run(), stale_by_status());
  EXPECT_EQ(shell("$A refresh -j 4").exit_code, 0);
  EXPECT_EQ(content("log"), "1\n2\n3\n9\n");
  EXPECT_EQ(content("n"), "4\n");
  EXPECT_EQ(shell("$A status").exit_code, 0);
}

TEST_F(Refresh, AStageThatIsNeverFreshIsRunOnce) {
  shell("echo 0 > n; $A run -- sh -c 'cat n > copy'");
  // Not recorded as part of the stage, as another program would do it.
  shell("$A run -- sh -c 'cat copy > again; date +%N > n'; $A run @1");
  const auto outcome = shell("$A refresh --json");
  const Json report = Json::parse(outcome.out);
  for (const Json& stage : report["stages"]) EXPECT_EQ(stage["outcome"], "done");
  EXPECT_LE(report["stages"].size(), 2U);
  EXPECT_EQ(outcome.exit_code, report["stale"].empty() ? 0 : 1);
  EXPECT_EQ(report["stale"].size(), stale_by_status().size());
}

TEST_F(Refresh, ASignalIsPassedOnAndEndsIt) {
  shell(
      "echo 1 > in; $A run -- sh -c 'cat in > a; [ ! -e slow ] || { touch started; exec sleep 60; "
      "}'");
  shell("$A run -- sh -c 'cat a > b'; echo 2 > in; touch slow");
  const auto outcome = shell(
      "$A refresh & r=$!; for i in $(seq 3000); do [ -e started ] && break; sleep 0.01; done;"
      " kill -TERM $r; wait $r");
  EXPECT_EQ(outcome.exit_code, 128 + 15);
  EXPECT_EQ(content("b"), "1\n");
  EXPECT_EQ(json("show last")["run"]["signal"], 15);
}

TEST_F(Refresh, OnlyOneAtATime) {
  shell(
      "echo 1 > in; $A run -- sh -c 'cat in > a; [ ! -e slow ] || { touch started; exec sleep 60; "
      "}'");
  shell("echo 2 > in; touch slow");
  const auto outcome = shell(
      "$A refresh -q & r=$!; for i in $(seq 3000); do [ -e started ] && break; sleep 0.01; done;"
      " $A refresh; echo code $?; kill -TERM $r; wait $r");
  EXPECT_THAT(outcome.out, HasSubstr("code 3"));
  EXPECT_THAT(outcome.err, HasSubstr("assay: refresh: another one is running in this project"));
}

TEST_F(Refresh, BadInputIsOneLine) {
  shell("echo 1 > raw; $A run -- sh -c 'cat raw > a'; $A run -- false");
  const auto line = [&](const std::string& arguments) {
    const auto outcome = shell("$A refresh " + arguments);
    EXPECT_EQ(outcome.exit_code, 64) << arguments;
    return outcome.err;
  };
  EXPECT_EQ(line("--jobs 0"), "assay: refresh --jobs: '0' is not a whole number from 1 to 1,024\n");
  EXPECT_THAT(line("--jobs many"),
              HasSubstr("refresh --jobs: 'many' is not a whole number from 1 to 1,024"));
  EXPECT_THAT(line("nothing"), HasSubstr("neither a run nor a file"));
  EXPECT_THAT(line("raw"), HasSubstr("refresh 'raw': no stage makes this file"));
  EXPECT_THAT(line("2"), HasSubstr("refresh '2': this run did not succeed and is not a stage"));
  shell("$A run @1");
  EXPECT_THAT(line("1"),
              HasSubstr("run 1 is not the current one of its stage; name the stage: @1"));
  const auto inside = shell("echo 2 > raw; $A run -- $A refresh");
  EXPECT_EQ(inside.exit_code, 3);
  EXPECT_THAT(inside.err, HasSubstr("inside another `assay run`"));
  EXPECT_THAT(inside.err, Not(HasSubstr("@1")));
}

TEST_F(Refresh, ASecretIsAnObstacle) {
  shell("echo 1 > in; $A run -- sh -c 'cat in > out' - --password=hunter2; echo 2 > in");
  const auto outcome = shell("$A refresh");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("its command contained a secret"));
  EXPECT_THAT(shell("$A refresh --dry-run").out, HasSubstr("cannot run: stage 1: "));
}

}  // namespace
}  // namespace assay
