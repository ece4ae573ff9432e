#include "observe/collect/process/proc.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <array>

namespace assay::collect {
namespace {

void use_cpu(double seconds) {
  timespec now{};
  do {
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  } while (static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9 < seconds);
}

// A process with one child that exited after using 0.2 s of CPU and one that has used 0.1 s and
// waits; both before the pipe is closed.
TEST(ProcessUsage, IsOfAllDescendantsAndTheirExitedChildren) {
  std::array<int, 2> ready{};
  ASSERT_EQ(::pipe(ready.data()), 0);
  const pid_t parent = ::fork();
  if (parent == 0) {
    if (::fork() == 0) {
      use_cpu(0.2);
      ::_exit(0);
    }
    ::wait(nullptr);
    if (::fork() == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      use_cpu(0.1);
      ::close(ready[1]);
      ::close(ready[0]);
      for (;;) ::pause();
    }
    ::close(ready[1]);
    ::wait(nullptr);
    ::_exit(0);
  }
  ::close(ready[1]);
  char byte = 0;
  EXPECT_EQ(::read(ready[0], &byte, 1), 0);
  ::close(ready[0]);
  const ProcessTable table = ProcessTable::read();
  const ProcessUsage below_us = table.usage_below(::getpid());
  EXPECT_EQ(below_us.processes, 2U);
  EXPECT_GE(below_us.cpu_seconds, 0.25);
  EXPECT_LT(below_us.cpu_seconds, 5);
  EXPECT_GT(below_us.memory_bytes, 100'000U);
  EXPECT_EQ(table.usage_below(parent).processes, 1U);
  EXPECT_EQ(table.usage_below(-1).processes, 0U);
  ::kill(parent, SIGKILL);
  ::waitpid(parent, nullptr, 0);
}

}  // namespace
}  // namespace assay::collect
