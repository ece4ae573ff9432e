#include "base/wait_status.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <csignal>

namespace assay::base {
namespace {

// sh(1) is the oracle: what it says of a command in $?.
int by_the_shell(const std::string& command) {
  const std::string line = "sh -c '" + command + "' 2>/dev/null; exit $?";
  const int status = ::system(line.c_str());
  EXPECT_TRUE(WIFEXITED(status));
  return WEXITSTATUS(status);
}

TEST(WaitStatus, IsTheNumberThatAShellHasForIt) {
  for (const char* command : {"exit 0", "exit 1", "exit 255", "kill -KILL $$", "kill -TERM $$"}) {
    EXPECT_EQ(shell_exit_code(::system(command)), by_the_shell(command)) << command;
  }
  EXPECT_EQ(shell_exit_code(::system("kill -KILL $$")), 128 + SIGKILL);
}

}  // namespace
}  // namespace assay::base
