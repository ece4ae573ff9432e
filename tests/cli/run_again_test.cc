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
  EXPECT_THAT(redirects(), HasSubstr("1>>")) << "it was not the first to write";
  EXPECT_EQ(shell("$A run @1").exit_code, 0);
  EXPECT_THAT(content("log"), StartsWith("header\nstage\nfooter\n"));
}

TEST_F(RunAgain, ALogThatTheStageWasTheFirstToWriteToStaysWhole) {
  std::ofstream(project_.path() / "p.sh")
      << "$A run -- sh -c 'echo stage; echo x > out'; echo footer\n";
  shell("bash p.sh > log 2>&1");
  ASSERT_EQ(content("log"), "stage\nfooter\n");
  const auto again = shell("$A run @1");
  EXPECT_EQ(content("log"), "stage\nfooter\n");
  EXPECT_EQ(again.out, "stage\n");
  EXPECT_EQ(again.err, "assay: " + path("log") +
                           ": differs from what the stage left there; the stage's standard output "
                           "is not redirected\n");
}

// What the second stage left there is recorded, but as a log.
TEST_F(RunAgain, ALogOfALaterStageStaysWhole) {
  shell("($A run -- echo first; $A run -- sh -c 'echo second; echo x > out') > log");
  ASSERT_EQ(content("log"), "first\nsecond\n");
  EXPECT_THAT(shell("$A run @1").err, HasSubstr("is not redirected"));
  EXPECT_EQ(content("log"), "first\nsecond\n");
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

TEST_F(RunAgain, AFileThatIsGivenNowHasPrecedence) {
  shell("echo b > in; $A run -- sh -c 'cat; echo e >&2' < in > out 2>&1; echo c > in");
  const auto again = shell("$A run @1 > new");
  EXPECT_EQ(content("new"), "c\n");
  EXPECT_EQ(content("out"), "b\ne\n");
  EXPECT_THAT(again.err,
              AllOf(StartsWith("assay: " + path("out") + ": is not written"), EndsWith("\ne\n")));
  shell("$A run @1 > new");
  EXPECT_EQ(content("new"), "c\n") << "it is the stage's now";
}

TEST_F(RunAgain, AFolderThatIsGoneDoesNotKeepTheStageFromRunning) {
  shell("mkdir d; $A run -- sh -c 'echo x > made; echo said' > d/out; rm -r d made");
  const auto again = shell("$A run @1");
  EXPECT_EQ(again.exit_code, 0);
  EXPECT_EQ(again.out, "said\n");
  EXPECT_EQ(content("made"), "x\n");
  EXPECT_EQ(again.err, "assay: " + path("d/out") +
                           ": cannot be opened: No such file or directory; the stage's standard "
                           "output is not redirected\n");
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

}  // namespace
}  // namespace assay
