// `assay compare --resume`: interrupted experiments continue, and the journal keeps interim
// analyses, changed rules and machines.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "base/json.h"
#include "cli/compare_fixture.h"
#include "support/process.h"

namespace assay {
namespace {

using base::Json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Ctrl-C while it runs: what was measured is reported and kept, without a verdict.
TEST_F(CompareCli, AnInterruptedExperimentGoesOn) {
  const pid_t child = ::fork();
  if (child == 0) {
    const int out = ::open((directory_.path() / "printed").c_str(), O_CREAT | O_WRONLY, 0600);
    ::dup2(out, STDOUT_FILENO);
    if (::chdir(directory_.path().c_str()) != 0) ::_exit(99);
    ::execl(support::program().c_str(), "assay", "compare", "--a", "sleep 0.01; echo took 1", "--b",
            "sleep 0.01; echo took 2", "--metric", kTook, "--min-pairs", "1000", "-o", "x",
            "--json", nullptr);
    ::_exit(99);
  }
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (runs_in("x/runs.jsonl") < 30 && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ::kill(child, SIGINT);
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 2);
  const Json before = Json::parse(read("printed"));
  EXPECT_EQ(before["verdict"], "INCONCLUSIVE");
  EXPECT_NEAR(before["effect_pct"].get<double>(), 100, 1e-9);
  const int kept = runs_in("x/runs.jsonl");
  const auto outcome = compare({"--resume", "x", "--min-pairs", "2", "--max-pairs",
                                std::to_string(before["pairs"].get<int>() + 2), "--half-width",
                                "0.0001%", "--json"});
  // Twice as long, every time: clear after an interim analysis too. The end was not planned,
  // though.
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  const Json after = Json::parse(outcome.out);
  EXPECT_GE(after["pairs"], before["pairs"]);
  EXPECT_GE(runs_in("x/runs.jsonl"), kept);
  ASSERT_EQ(before["interim_analyses"].size(), 1U);
  EXPECT_TRUE(before["interim_analyses"][0]["confidence"].is_null());
  ASSERT_EQ(after["interim_analyses"].size(), 2U);
  EXPECT_EQ(after["interim_analyses"][0], before["interim_analyses"][0]);
  EXPECT_EQ(after["interim_analyses"][1]["planned"], false);
  EXPECT_NEAR(after["interim_analyses"][1]["confidence"].get<double>(), 1 - 0.05 / 12, 1e-12);
  EXPECT_THAT(after["warnings"].dump(), HasSubstr("reported 1 time before"));
}

// Six pairs that all say more decide, if that was the plan. After an interim analysis they do not:
// one can wait for such a run of luck.
TEST_F(CompareCli, AnInterimAnalysisCostsConfidence) {
  const std::vector<std::string> arms = {"--a", kA, "--b", kB, "--metric", kTook};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), arms.begin(), arms.end());
    return compare(more);
  };
  EXPECT_EQ(with({"--max-pairs", "7", "-o", "planned"}).exit_code, 1);
  EXPECT_EQ(with({"--max-pairs", "1", "-o", "peeked"}).exit_code, 2);
  const auto resumed = compare({"--resume", "peeked", "--max-pairs", "7"});
  EXPECT_EQ(resumed.exit_code, 2) << resumed.out;
  EXPECT_THAT(resumed.out, AllOf(HasSubstr("reported 1 time before"),
                                 HasSubstr("the maximum number of pairs was changed from 1 to 7")));
}

// The rule is met: resuming alone would end at once, so the option to change is suggested.
TEST_F(CompareCli, WhatIsSuggestedChangesSomething) {
  const auto one =
      compare({"--a", kA, "--b", kB, "--metric", kTook, "--max-pairs", "1", "-o", "x"});
  EXPECT_THAT(one.out + one.err,
              HasSubstr("--resume " + (directory_.path() / "x").string() + " --max-pairs 2\n"));
  const auto again = compare({"--resume", "x", "--max-pairs", "2", "--json"});
  EXPECT_EQ(Json::parse(again.out)["pairs"], 2);
  const auto narrow =
      compare({"--a", kA, "--b", kA, "--metric", kTook, "--min-pairs", "2", "--margin", "0%"});
  EXPECT_EQ(narrow.exit_code, 2);
  EXPECT_THAT(narrow.out + narrow.err, HasSubstr("--half-width 0.125%\n"));
}

// One experiment has one verdict, and a change of the margin is reported.
TEST_F(CompareCli, AChangedMarginReachesTheReport) {
  EXPECT_EQ(
      compare({"--a", kA, "--b", kB, "--metric", kTook, "--max-pairs", "8", "-o", "mar"}).exit_code,
      1);
  const auto resumed = compare({"--resume", "mar", "--margin", "5%", "--json"});
  EXPECT_EQ(resumed.exit_code, 0);
  const Json json = Json::parse(resumed.out);
  EXPECT_EQ(json["rule_changes"][0]["from"]["margin_pct"], 1.0);
  EXPECT_EQ(json["rule_changes"][0]["to"]["margin_pct"], 5.0);
  const auto page =
      support::run({{support::program(), "report", "mar", "-o", "page.md"}, "", directory_.path()});
  EXPECT_EQ(page.exit_code, 0) << page.err;
  EXPECT_THAT(read("page.md"),
              AllOf(HasSubstr("PASS"), HasSubstr("allowed: 5 % more"), Not(HasSubstr("FAIL")),
                    HasSubstr("the margin was changed from 1 % to 5 %")));
}

// Where it ran is known, and going on elsewhere is noticed.
TEST_F(CompareCli, AnotherMachineIsNoticed) {
  const Json json = compare_json({"--a", kA, "--b", kB, "--metric", kTook, "--max-pairs", "1"}, 2);
  ASSERT_EQ(json["sessions"].size(), 1U);
  const std::string kernel = json["sessions"][0]["kernel"];
  EXPECT_FALSE(kernel.empty());
  EXPECT_FALSE(std::string(json["sessions"][0]["assay"]).empty());
  std::string journal = read("x/runs.jsonl");
  const std::size_t at = journal.find("\"kernel\":\"");
  ASSERT_NE(at, std::string::npos);
  journal.insert(at + 10, "not-");
  write("x/runs.jsonl", journal);
  const auto resumed = compare({"--resume", "x", "--max-pairs", "2"});
  EXPECT_THAT(resumed.out,
              HasSubstr("with another kernel: " + kernel + " instead of not-" + kernel));
}

}  // namespace
}  // namespace assay
