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

// A separate tree: root, its child parent, and two children of that: one that exited after using
// 0.2 s of CPU, and one that has used 0.1 s and waits when the pipe is closed.
TEST(ProcessUsage, IsOfAllDescendantsAndTheirExitedChildren) {
  std::array<int, 2> ready{};
  ASSERT_EQ(::pipe(ready.data()), 0);
  const auto start = [](const auto& body) {
    const pid_t child = ::fork();
    if (child != 0) return child;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    body();
    ::_exit(0);
  };
  const pid_t root = start([&] {
    const pid_t parent = start([&] {
      start([] { use_cpu(0.2); });
      ::wait(nullptr);
      start([&] {
        use_cpu(0.1);
        ::close(ready[1]);
        for (;;) ::pause();
      });
      ::close(ready[1]);
      for (;;) ::pause();
    });
    if (::write(ready[1], &parent, sizeof parent) != sizeof parent) return;
    ::close(ready[1]);
    for (;;) ::pause();
  });
  ::close(ready[1]);
  pid_t parent = 0;
  EXPECT_EQ(::read(ready[0], &parent, sizeof parent), static_cast<ssize_t>(sizeof parent));
  char byte = 0;
  EXPECT_EQ(::read(ready[0], &byte, 1), 0);
  ::close(ready[0]);
  const ProcessTable table = ProcessTable::read();
  const ProcessUsage below_root = table.usage_below(root);
  EXPECT_EQ(below_root.processes, 2U);
  EXPECT_GE(below_root.cpu_seconds, 0.25);
  EXPECT_LT(below_root.cpu_seconds, 5);
  EXPECT_GT(below_root.memory_bytes, 100'000U);
  EXPECT_EQ(table.usage_below(parent).processes, 1U);
  EXPECT_EQ(table.usage_below(-1).processes, 0U);
  ::kill(root, SIGKILL);
  ::waitpid(root, nullptr, 0);
}

}  // namespace
}  // namespace assay::collect
