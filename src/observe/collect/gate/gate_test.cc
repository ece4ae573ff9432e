// A process that serves the gate, and each of its successors, may be killed at any instruction.
#include "observe/collect/gate/gate.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <random>
#include <thread>

namespace assay::collect {
namespace {

// Opens a file until `enough` is set; every call is stopped.
[[noreturn]] void be_stopped(Gate& gate, const std::atomic<bool>& enough) {
  if (!gate.install()) ::_exit(77);
  while (!enough) ::close(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  ::_exit(0);
}

TEST(GateTest, GuardsMayBeKilledInTheMiddleOfAnAnswer) {
  if (const auto available = gate_available(); !available) {
    GTEST_SKIP() << available.error().line();
  }
  void* page = ::mmap(nullptr, sizeof(std::atomic<bool>), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  auto& enough = *new (page) std::atomic<bool>(false);
  shared_request();  // before the guards are forked
  Gate gate(GateMode::kEverything);
  const pid_t subject = ::fork();
  if (subject == 0) be_stopped(gate, enough);
  ASSERT_TRUE(gate.receive());

  const auto start_guard = [&] {
    const pid_t guard = ::fork();
    if (guard != 0) return guard;
    take_over_gate(gate.listener());
    ::_exit(0);
  };
  std::mt19937 random(7);
  for (int i = 0; i < 200; ++i) {
    const pid_t guard = start_guard();
    std::this_thread::sleep_for(std::chrono::microseconds(500 + random() % 1500));
    ::kill(guard, SIGKILL);
    ::waitpid(guard, nullptr, 0);
  }
  enough = true;
  const pid_t guard = start_guard();
  int status = -1;
  for (int i = 0; i < 1000 && ::waitpid(subject, &status, WNOHANG) == 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0)
      << "it waits for an answer: " << status;
  ::kill(subject, SIGKILL);
  ::kill(guard, SIGKILL);
  ::waitpid(guard, nullptr, 0);
  ::munmap(page, sizeof(std::atomic<bool>));
}

}  // namespace
}  // namespace assay::collect
