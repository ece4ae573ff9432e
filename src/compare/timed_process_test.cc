#include "compare/timed_process.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>
#include <sstream>
#include <thread>

#include "base/testing/temp_dir.h"

namespace assay::compare {
namespace {

class Process : public ::testing::Test {
 protected:
  ProcessOutcome run(std::vector<std::string> arguments, ProcessRequest request = {}) {
    request.arguments = std::move(arguments);
    request.out = directory_.path() / "out";
    request.err = directory_.path() / "err";
    const auto interrupts = Interrupts::watch();
    auto outcome = run_process(request, *interrupts);
    EXPECT_TRUE(outcome) << outcome.error().line();
    return outcome.value_or(ProcessOutcome());
  }
  std::string read(const char* name) {
    std::ostringstream text;
    text << std::ifstream(directory_.path() / name).rdbuf();
    return text.str();
  }
  base::testing::TempDir directory_;
};

TEST_F(Process, IsTimedAndItsOutputKept) {
  const auto outcome =
      run(shell_arguments("echo $WHO; echo bad >&2; sleep 0.05"), {.environment = {"WHO=me"}});
  EXPECT_TRUE(outcome.ok());
  EXPECT_GE(outcome.wall_s, 0.05);
  EXPECT_LT(outcome.cpu_s, outcome.wall_s);
  EXPECT_EQ(read("out"), "me\n");
  EXPECT_EQ(read("err"), "bad\n");
}

TEST_F(Process, ReportsHowItEnded) {
  EXPECT_EQ(run(shell_arguments("exit 3")).how(), "exited with 3");
  EXPECT_EQ(run(shell_arguments("kill -9 $$")).how(), "was killed by signal 9");
  EXPECT_EQ(run(shell_arguments("cat")).how(), "exited with 0");  // nothing to read
  EXPECT_EQ(run(shell_arguments("/no/such/thing")).how(), "exited with 127 (command not found)");
}

TEST_F(Process, AVanishedProgramIsAnError) {
  const auto interrupts = Interrupts::watch();
  const auto outcome = run_process(
      {.arguments = {"/no/such"}, .out = directory_.path() / "o", .err = directory_.path() / "e"},
      *interrupts);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().line(), "/no/such: is not an executable program");
}

TEST_F(Process, ALateOneEndsWithItsChildren) {
  const auto outcome = run(shell_arguments("sleep 60 & sleep 60; true"),
                           {.environment = {"PATH=/usr/bin:/bin"}, .timeout = base::Seconds(0.1)});
  EXPECT_TRUE(outcome.timed_out);
  EXPECT_LT(outcome.wall_s, 60);  // its own 60 seconds
  EXPECT_EQ(outcome.how(), "timed out");
}

TEST_F(Process, OneThatDoesNotListenIsKilled) {
  const auto outcome = run(shell_arguments("trap '' TERM; while :; do sleep 0.1; done"),
                           {.environment = {"PATH=/usr/bin:/bin"}, .timeout = base::Seconds(0.1)});
  EXPECT_TRUE(outcome.timed_out);
  EXPECT_GE(outcome.wall_s, 2);
  EXPECT_LT(outcome.wall_s, 60);
}

TEST_F(Process, AnInterruptEndsIt) {
  const auto interrupts = Interrupts::watch();
  EXPECT_FALSE(interrupts->happened());
  ::kill(::getpid(), SIGINT);
  EXPECT_TRUE(interrupts->happened());
  const auto outcome = run_process({.arguments = {"/bin/sleep", "60"},
                                    .out = directory_.path() / "o",
                                    .err = directory_.path() / "e"},
                                   *interrupts);
  ASSERT_TRUE(outcome);
  EXPECT_TRUE(outcome->interrupted);
  EXPECT_LT(outcome->wall_s, 60);
}

TEST_F(Process, OutputHasItsMoments) {
  // Continues only when its first line has arrived, so that two lines never arrive as one under
  // load.
  const std::string out = (directory_.path() / "out").string();
  const auto outcome =
      run(shell_arguments(fmt::format(
              "echo a; until grep -q a {}; do sleep 0.01; done; sleep 0.1; echo bc", out)),
          {.environment = {"PATH=/usr/bin:/bin"}, .time_output = true});
  EXPECT_EQ(read("out"), "a\nbc\n");
  ASSERT_EQ(outcome.moments.size(), 2U);
  EXPECT_EQ(outcome.moments[0].end, 2U);
  EXPECT_EQ(outcome.moments[1].end, 5U);
  EXPECT_GE(outcome.moments[1].seconds - outcome.moments[0].seconds, 0.09);
}

TEST_F(Process, StandardErrorHasItsOwnMoments) {
  const std::string err = (directory_.path() / "err").string();
  const auto outcome = run(
      shell_arguments(fmt::format(
          "echo a; echo bcd >&2; until grep -q bcd {}; do sleep 0.01; done; sleep 0.1; echo e >&2",
          err)),
      {.environment = {"PATH=/usr/bin:/bin"}, .time_output = true});
  EXPECT_EQ(read("out"), "a\n");
  EXPECT_EQ(read("err"), "bcd\ne\n");
  ASSERT_EQ(outcome.err_moments.size(), 2U);
  EXPECT_EQ(outcome.err_moments[1].end, 6U);
  EXPECT_GE(outcome.err_moments[1].seconds - outcome.err_moments[0].seconds, 0.09);
  EXPECT_EQ(outcome.moments.back().end, 2U);
}

TEST_F(Process, AConsumedSignalInterruptsNoOther) {
  auto interrupts = Interrupts::watch();
  ::kill(::getpid(), SIGINT);
  interrupts->consume();
  EXPECT_TRUE(interrupts->happened());
  const auto outcome = run_process(
      {.arguments = {"/bin/true"}, .out = directory_.path() / "o", .err = directory_.path() / "e"},
      *interrupts);
  ASSERT_TRUE(outcome);
  EXPECT_TRUE(outcome->ok());
}

TEST(UnknownProgram, IsOneThatNeitherPathNorTheShellKnows) {
  const base::Environment environment = {"PATH=/usr/bin:/bin"};
  EXPECT_EQ(unknown_program("no-such-thing --x 1", environment), "no-such-thing");
  EXPECT_EQ(unknown_program("/no/such", environment), "/no/such");
  for (const char* command : {"true", "cd /", "exit 1", "X=1 no-such-thing", "no-such-thing | cat",
                              "no-such-thing; true", "", "echo $X"}) {
    EXPECT_FALSE(unknown_program(command, environment)) << command;
  }
}

TEST(PlainArguments, AreThoseThatNeedNoShell) {
  using Arguments = std::vector<std::string>;
  EXPECT_EQ(plain_arguments("true"), (Arguments{"true"}));
  EXPECT_EQ(plain_arguments(" sleep  0.1 "), (Arguments{"sleep", "0.1"}));
  EXPECT_EQ(plain_arguments("echo 'a b'c --x=1"), (Arguments{"echo", "a bc", "--x=1"}));
  for (const char* command :
       {"true; false", "a | b", "echo $X", "X=1 true", "cd /", "no-such-thing", "echo 'a", "",
        "echo *", "echo \"a\"", "echo ~", "echo \xff"}) {
    EXPECT_FALSE(plain_arguments(command)) << command;
  }
}

}  // namespace
}  // namespace assay::compare
