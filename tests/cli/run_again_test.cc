// `assay run @N` and the files that a stage's output goes to: nothing that others wrote is lost.
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
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

class RunAgain : public ::testing::Test {
 protected:
  void SetUp() override { shell("$A init -q"); }
  support::ProcessResult shell(const std::string& script) {
    return support::run(
        {{"bash", "-c", "export A='" + support::program() + "'; " + script}, "", project_.path()});
  }
  std::string content(const std::string& name) {
    std::ifstream file(project_.path() / name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::string redirects() {
    return Json::parse(shell("$A show last --json").out)["run"]["redirects"].dump();
  }
  std::string path(const std::string& name) {
    return std::filesystem::canonical(project_.path()).string() + "/" + name;
  }

  base::testing::TempDir project_;
};

TEST_F(RunAgain, ALogThatOthersWriteToStaysWhole) {
  std::ofstream(project_.path() / "p.sh")
      << "echo header; $A run -- sh -c 'echo stage; echo x > out'; echo footer\n";
  shell("bash p.sh > log 2>&1");
  ASSERT_EQ(content("log"), "header\nstage\nfooter\n");
  EXPECT_THAT(redirects(), HasSubstr("1>>&")) << "it was not the first to write";
  EXPECT_EQ(shell("$A run @1").exit_code, 0);
  EXPECT_THAT(content("log"), StartsWith("header\nstage\nfooter\n"));
}

// The log was the job's.
TEST_F(RunAgain, ALogThatTheStageWasTheFirstToWriteToStaysWhole) {
  std::ofstream(project_.path() / "p.sh")
      << "$A run -- sh -c 'echo stage; echo x > out'; echo footer\n";
  shell("bash p.sh > log 2>&1");
  ASSERT_EQ(content("log"), "stage\nfooter\n");
  const auto again = shell("$A run @1");
  EXPECT_EQ(content("log"), "stage\nfooter\n");
  EXPECT_EQ(again.out, "stage\n");
  EXPECT_THAT(again.err, IsEmpty());
}

// What the stage left is still there, and lines of others follow.
TEST_F(RunAgain, AResultInALogOfOthersIsAppendedTo) {
  shell("($A run -- echo first; $A run -- sh -c 'echo second; echo x > out') > log");
  ASSERT_EQ(content("log"), "first\nsecond\n");
  EXPECT_EQ(shell("$A status").exit_code, 0);
  EXPECT_EQ(shell("$A run @1").err, "");
  EXPECT_EQ(content("log"), "first\nsecond\nfirst\n");
}

TEST_F(RunAgain, ALogOfTheStageThatHasOtherLinesIsAppendedTo) {
  shell("$A run -- sh -c 'echo said; echo x > out' > log; echo note >> log");
  EXPECT_EQ(shell("$A run @1").out, "");
  EXPECT_EQ(content("log"), "said\nnote\nsaid\n");
}

TEST_F(RunAgain, AResultThatALogFollowsIsNotOverwrittenUnasked) {
  shell("$A run -- echo first > list; $A run -- sh -c 'echo second; echo x > out' >> list");
  const auto again = shell("$A run @1");
  EXPECT_EQ(again.exit_code, 1);
  EXPECT_EQ(again.err, "assay: run @1: " + path("list") +
                           " is a log that run 2 has added to and would be overwritten; keep a "
                           "copy and remove it, or use --overwrite\n");
  EXPECT_EQ(content("list"), "first\nsecond\n");
}

TEST_F(RunAgain, TheLogThatIsBeingWrittenGetsNoHoles) {
  shell("(echo one; $A run -- sh -c 'echo stage; echo x > out'; $A run @1; echo end) > log 2>&1");
  EXPECT_EQ(content("log"), "one\nstage\nstage\nend\n");
  shell("($A run -- sh -c 'echo first; echo x > o2'; $A run @2; echo end) > log2 2>&1");
  EXPECT_EQ(content("log2"), "first\nfirst\nend\n");
}

TEST_F(RunAgain, WhatOnlyTheStageWroteIsMadeAnew) {
  shell("echo b > in; $A run -- sh -c 'cat; echo e >&2' < in > both 2>&1; echo c > in");
  EXPECT_THAT(shell("$A run @1").err, IsEmpty());
  EXPECT_EQ(content("both"), "c\ne\n");
  shell("rm both; $A run @1");
  EXPECT_EQ(content("both"), "c\ne\n");
}

TEST_F(RunAgain, AStageWritesWhereItWrote) {
  shell("echo b > in; $A run -- sh -c 'cat; echo e >&2' < in > out 2>&1; echo c > in");
  const auto again = shell("$A run @1 > new");
  EXPECT_EQ(content("new"), "");
  EXPECT_EQ(content("out"), "c\ne\n");
  EXPECT_EQ(again.err, "assay: the stage's standard output goes to " + path("out") +
                           ", as before; --here leaves it where it is now\n");
  EXPECT_THAT(shell("$A run -q @1 > new").err, IsEmpty());
  EXPECT_EQ(shell("$A status").exit_code, 0);
}

TEST_F(RunAgain, HereItWritesWhereItIsTold) {
  shell("echo b > in; $A run -- sh -c 'cat; echo e >&2' < in > out 2>&1; echo c > in");
  const auto again = shell("$A run @1 --here < in > new");
  EXPECT_EQ(content("new"), "c\n");
  EXPECT_EQ(content("out"), "b\ne\n");
  EXPECT_EQ(again.err, "e\n");
  shell("$A run @1 > other");
  EXPECT_EQ(content("new"), "c\n") << "it is the stage's now";
  EXPECT_EQ(content("other"), "");
}

// The job of another day: its log gets no result, and is no file of the stage.
TEST_F(RunAgain, InAJobWithALogTheResultGoesWhereItWent) {
  shell("echo b > in; $A run -- sort in > out 2> /dev/null; echo a >> in");
  std::ofstream(project_.path() / "p.sh") << "echo start; $A run -q @1; echo done\n";
  shell("nohup bash p.sh > nohup.log 2>&1 < /dev/null");
  EXPECT_EQ(content("out"), "a\nb\n");
  EXPECT_THAT(content("nohup.log"), AllOf(HasSubstr("start\n"), EndsWith("done\n")));
  const auto status = shell("$A status");
  EXPECT_EQ(status.exit_code, 0) << status.out;
  EXPECT_EQ(Json::parse(shell("$A show last --json").out)["outputs"].size(), 1U);
}

TEST_F(RunAgain, AnEditIsNotOverwritten) {
  shell("echo b > in; $A run -- cp in out; $A run -- cat in > out2; echo mine | tee out > out2");
  const auto refused = shell("$A run @1");
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_EQ(refused.err,
            "assay: run @1: " + path("out") +
                " was changed by hand and would be overwritten; keep a copy and remove "
                "it, or use --overwrite\n");
  EXPECT_EQ(shell("$A run @2").exit_code, 1);
  EXPECT_EQ(content("out") + content("out2"), "mine\nmine\n");
  EXPECT_EQ(Json::parse(shell("$A log --json").out)["runs"].size(), 2U) << "nothing ran";
  EXPECT_EQ(shell("$A run @2 --here").out, "b\n") << "that writes to no edited file";
  EXPECT_EQ(shell("$A run @1 --overwrite").exit_code, 0);
  EXPECT_EQ(content("out"), "b\n");
  for (const std::string option : {"--here", "--overwrite"}) {
    EXPECT_EQ(shell("$A run " + option + " -- true").err,
              "assay: run " + option + ": works only with a stage; assay run @N " + option + "\n");
  }
}

TEST_F(RunAgain, ALogInAFolderThatIsGoneDoesNotKeepTheStageFromRunning) {
  shell("mkdir d; $A run -- sh -c 'echo x > made; echo said' > d/out; rm -r d made");
  const auto again = shell("$A run @1");
  EXPECT_EQ(again.exit_code, 0);
  EXPECT_EQ(again.out, "said\n");
  EXPECT_EQ(content("made"), "x\n");
  EXPECT_EQ(again.err, "assay: " + path("d/out") +
                           ": cannot be opened: No such file or directory; the stage's standard "
                           "output is not redirected\n");
}

TEST_F(RunAgain, AResultGoesNowhereElse) {
  shell("mkdir d; $A run -- echo said > d/out; rm -r d");
  const auto again = shell("$A run @1");
  EXPECT_EQ(again.exit_code, 1);
  EXPECT_EQ(again.out, "");
  EXPECT_EQ(again.err, "assay: " + path("d/out") +
                           ": cannot be opened: No such file or directory; it is where the stage's "
                           "standard output goes; --here leaves that as it is\n");
}

TEST_F(RunAgain, ArgumentsAfterAStageAreNotDropped) {
  shell("$A run -- sh -c 'echo x > made'");
  const auto more = shell("$A run @1 extra words");
  EXPECT_EQ(more.exit_code, 64);
  EXPECT_EQ(more.err,
            "assay: run @1: a stage has its own arguments; 'extra' cannot be added; change a "
            "value with --set KEY=VALUE, or give the whole command\n");
  EXPECT_EQ(shell("$A run @1 -- extra").exit_code, 64);
  EXPECT_EQ(shell("$A run @1 --quiet").exit_code, 0);
}

TEST_F(RunAgain, ACommandMayBeCalledLikeAStage) {
  shell("$A run -- sh -c 'echo x > made'");
  EXPECT_EQ(shell("$A run -- @1").exit_code, 127);
  shell("printf '#!/bin/sh\\necho mine\\n' > @1; chmod +x @1");
  EXPECT_EQ(shell("PATH=.:$PATH; $A run -- @1").out, "mine\n");
}

// What `--explain` and `--json` print comes after the command's own lines, also in the files of a
// repeated stage's job.
class OwnLines : public RunAgain {
 protected:
  Json last() { return Json::parse(shell("$A show last --json").out); }
};

TEST_F(OwnLines, ChangeNoRunAndNoHash) {
  for (int i = 0; i < 20; ++i) {
    shell("$A run --explain --json -- sh -c 'echo oh >&2; cat /etc/passwd > o' 2> err");
    EXPECT_EQ(last()["run"]["complete"], true) << i << last()["missed"].dump();
  }
  for (const std::string options : {"--explain", "--json", "--archive", "--explain --json"}) {
    shell("rm -rf .assay both; $A init -q");
    shell("$A run " + options + " -- sh -c 'echo said; echo oh >&2' > both 2>&1");
    ASSERT_THAT(content("both"), AllOf(StartsWith("said\noh\n"), Not(EndsWith("oh\n"))));
    ASSERT_EQ(last()["outputs"].size(), 1U);
    EXPECT_EQ(last()["run"]["complete"], true) << options;
    EXPECT_EQ(last()["outputs"][0]["size"], 8) << options;
    EXPECT_EQ(shell("$A status").exit_code, 0) << options << shell("$A status").out;
  }
}

TEST_F(OwnLines, OfARepeatedStageGoToThisRun) {
  shell("$A run -- sh -c 'echo said; echo oh >&2' > both 2>&1");
  const auto again = shell("$A run @1 --json --explain");
  EXPECT_EQ(content("both"), "said\noh\n");
  EXPECT_THAT(again.err, AllOf(HasSubstr("output "), HasSubstr("\"complete\":true")));
}

// `exec > job.log`, then several stages.
class JobLog : public RunAgain {
 protected:
  void job(const std::string& script) {
    std::ofstream(project_.path() / "job.sh") << script;
    shell("bash job.sh > job.log 2>&1");
  }
};

TEST_F(JobLog, IsNoOutputOfItsStages) {
  job("echo start; $A run -- sh -c 'echo one; echo 1 > a'; $A run -- sh -c 'cat a | tee b';"
      " $A run -- true; $A run -- sh -c 'echo checked; test -e a'; echo done");
  ASSERT_EQ(content("job.log"), "start\none\n1\nchecked\ndone\n");
  for (const auto& [run, outputs] : {std::pair{1, 1}, {2, 1}, {3, 0}, {4, 0}}) {
    const auto shown = Json::parse(shell("$A show " + std::to_string(run) + " --json").out);
    EXPECT_EQ(shown["outputs"].size(), std::size_t(outputs)) << run;
  }
  EXPECT_EQ(shell("$A status").exit_code, 0);
  EXPECT_THAT(shell("$A dag").out, Not(HasSubstr("job.log")));
  const auto packed = shell(
      "$A export b --format ro-crate -o crate && cat crate && $A pack b -o b.tar && tar -tf b.tar");
  EXPECT_EQ(packed.exit_code, 0) << packed.err;
  EXPECT_THAT(packed.out, AllOf(HasSubstr("manifest.json"), Not(HasSubstr("\"job.log\""))));
}

// Both shells open the file of a redirection for the command alone, one in its own process.
TEST_F(JobLog, AFileOfOneCommandIsNotOne) {
  for (const std::string one : {"sh", "bash"}) {
    shell("rm -rf .assay o*; $A init -q; " + one +
          " -c '$A run -- echo 1 > o1; $A run -- echo 2 >> o2; { $A run -- echo 3; } > o3'");
    EXPECT_THAT(redirects(), Not(HasSubstr("&" + path("o3")))) << one;
    shell("echo mine > o1; $A run @2; $A run @2");
    EXPECT_THAT(shell("$A status").out, HasSubstr("output o1 was changed by hand")) << one;
    EXPECT_EQ(content("o2"), "2\n2\n2\n") << one;
  }
}

// The first stage prints what may be its result: it stays so whatever follows.
TEST_F(JobLog, OfAStageThatOnlyPrintsStaysFresh) {
  job("$A run -- echo one; echo done");
  const auto status = shell("$A status");
  EXPECT_EQ(status.exit_code, 0) << status.out;
  EXPECT_THAT(shell("$A lineage job.log").out, Not(HasSubstr("by hand")));
}

TEST_F(JobLog, IsAnOutputOnceAStageReadsIt) {
  shell("echo 1 > in; $A run -- sh -c 'cat in; cp in model' > train.log");
  EXPECT_EQ(Json::parse(shell("$A show 1 --json").out)["outputs"].size(), 1U);
  shell("$A run -- grep -c . train.log > lines");
  EXPECT_EQ(Json::parse(shell("$A show 1 --json").out)["outputs"].size(), 2U);
  EXPECT_THAT(shell("$A lineage lines").out, HasSubstr("(run 1)"));
  EXPECT_EQ(shell("$A status").exit_code, 0);
  shell("echo 2 >> in");
  EXPECT_EQ(shell("$A refresh").exit_code, 0);
  EXPECT_EQ(content("lines"), "2\n");
  EXPECT_THAT(shell("$A dag").out, HasSubstr("train.log  → @2"));
}

}  // namespace
}  // namespace assay
