// How a process ended, as a number and as text.
#include "base/process/exit_status.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>

namespace assay::base {
namespace {

// sh(1) is the oracle: the value of $? after a command.
int by_the_shell(const std::string& command) {
  const std::string line = "sh -c '" + command + "' 2>/dev/null; exit $?";
  const int status = ::system(line.c_str());
  EXPECT_TRUE(WIFEXITED(status));
  return WEXITSTATUS(status);
}

TEST(ExitStatus, IsTheNumberThatAShellHasForIt) {
  for (const char* command : {"exit 0", "exit 1", "exit 255", "kill -KILL $$", "kill -TERM $$"}) {
    EXPECT_EQ(shell_exit_code(::system(command)), by_the_shell(command)) << command;
  }
  EXPECT_EQ(shell_exit_code(::system("kill -KILL $$")), 128 + SIGKILL);
  EXPECT_EQ(shell_exit_code_of_failed_start(ENOENT), by_the_shell("/no/such"));
  EXPECT_EQ(shell_exit_code_of_failed_start(EACCES), by_the_shell("/etc/passwd"));
}

TEST(ExitStatus, NamesExitCodeOrSignal) {
  const int exited = ::system("exit 7"), killed = ::system("kill -KILL $$");
  EXPECT_EQ(exit_text(exited), "exited with 7");
  EXPECT_EQ(exit_text(killed), "was killed by signal 9");
  EXPECT_EQ(signal_of(exited), std::nullopt);
  EXPECT_EQ(signal_of(killed), SIGKILL);
}

TEST(ExitStatusDeathTest, IsPassedOnByExitingAlike) {
  EXPECT_EXIT(exit_with_status(::system("exit 7")), ::testing::ExitedWithCode(7), "");
  EXPECT_EXIT(exit_with_status(::system("kill -TERM $$")), ::testing::KilledBySignal(SIGTERM), "");
}

}  // namespace
}  // namespace assay::base
