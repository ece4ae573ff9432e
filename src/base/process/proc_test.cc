// What /proc reports about processes, against processes that this test starts.
#include "base/process/proc.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <string>
#include <vector>

namespace assay::base {
namespace {

TEST(ProcessStat, OfThisProcess) {
  const auto stat = process_stat(::getpid());
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->parent, ::getppid());
  EXPECT_FALSE(stat->has_ended());
  EXPECT_EQ(process_stat(::getpid())->start_ticks, stat->start_ticks);
  EXPECT_GT(stat->resident_pages, 100);
}

// A child that calls itself `name` and waits to be killed.
class Named {
 public:
  explicit Named(const char* name) {
    std::array<int, 2> ready{};
    EXPECT_EQ(::pipe(ready.data()), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_NAME, name);
      ::close(ready[1]);
      ::close(ready[0]);
      for (;;) ::pause();
    }
    ::close(ready[1]);
    char byte = 0;
    EXPECT_EQ(::read(ready[0], &byte, 1), 0);  // ends when the child has its name
    ::close(ready[0]);
  }
  ~Named() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Named(const Named&) = delete;
  Named& operator=(const Named&) = delete;
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
};

TEST(ProcessStat, WhateverTheProgramCallsItself) {
  // A parser that stops at the first parenthesis of "(a) Z 1 2)" reads the state of a zombie.
  for (const char* name : {"plain", "a b c", "a) Z 1 2", ") ) )", "((", "x\ny", ""}) {
    const Named child(name);
    const auto stat = process_stat(child.pid());
    ASSERT_TRUE(stat) << name;
    EXPECT_EQ(stat->parent, ::getpid()) << name;
    EXPECT_FALSE(stat->has_ended()) << name;
    EXPECT_GE(stat->start_ticks, process_stat(::getpid())->start_ticks) << name;
  }
}

TEST(ProcessStat, AZombieHasEnded) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_TRUE(process_stat(child)->has_ended());
  ::waitpid(child, nullptr, 0);
  EXPECT_FALSE(process_stat(child)) << "and then it is gone";
}

TEST(ProcessStat, TextThatIsCutShortIsNone) {
  const std::string whole = "7 (a) b) S 1 7 7 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 4711 9 9\n";
  const auto stat = parse_process_stat(whole);
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->state, 'S');
  EXPECT_EQ(stat->parent, 1);
  EXPECT_EQ(stat->start_ticks, 4711);
  const std::size_t enough = whole.find("4711");
  for (std::size_t size = 0; size <= enough; ++size) {
    EXPECT_FALSE(parse_process_stat(whole.substr(0, size))) << size;
  }
  EXPECT_FALSE(parse_process_stat("7 (a) S x 7 7 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 4711 9\n"));
}

// A shell started with these arguments, whose script prints a line and then reads one, which never
// comes: a process has its arguments in /proc only while it runs, and some time after exec.
class Waiting {
 public:
  explicit Waiting(std::vector<std::string> arguments) {
    std::array<int, 2> input{};
    std::array<int, 2> output{};
    EXPECT_EQ(::pipe2(input.data(), O_CLOEXEC), 0);
    EXPECT_EQ(::pipe2(output.data(), O_CLOEXEC), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(input[0], STDIN_FILENO);
      ::dup2(output[1], STDOUT_FILENO);
      std::vector<char*> pointers;
      for (std::string& argument : arguments) pointers.push_back(argument.data());
      pointers.push_back(nullptr);
      ::execv("/bin/sh", pointers.data());
      ::_exit(1);
    }
    ::close(input[0]);
    ::close(output[1]);
    open_input_ = input[1];
    char byte = 0;
    EXPECT_EQ(::read(output[0], &byte, 1), 1);
    ::close(output[0]);
  }
  ~Waiting() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    ::close(open_input_);
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
  int open_input_ = -1;
};

TEST(ProcessArguments, AreThoseThatItWasStartedWith) {
  const std::vector<std::string> arguments = {"any name", "-c", "echo; read x", "", "a\nb",
                                              "ü",        ""};
  const Waiting process(arguments);
  EXPECT_EQ(process_arguments(process.pid()), arguments);
  EXPECT_THAT(process_arguments(process.pid(), Bytes(10)), ::testing::IsEmpty());
}

TEST(ProcessArguments, OfThisProcess) {
  std::ifstream file("/proc/self/cmdline");
  std::string first;
  std::getline(file, first, '\0');
  ASSERT_FALSE(own_arguments().empty());
  EXPECT_EQ(own_arguments().front(), first);
  EXPECT_EQ(own_arguments(), process_arguments(::getpid()));
}

TEST(ProcessArguments, AreNoneOfAProcessThatIsGone) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  EXPECT_THAT(process_arguments(child), ::testing::IsEmpty());
}

TEST(ProcessMemory, ReadsStatusFile) {
  const MemorySize size = parse_memory_size(
      "Name:\tx\nVmPeak:\t  9 kB\nVmHWM:\t    20 kB\nVmRSS:\t    10 kB\nRssAnon:\t");
  EXPECT_EQ(size.resident_bytes, 10 * 1024);
  EXPECT_EQ(size.peak_bytes, 20 * 1024);
  for (const char* other : {"", "\nVmRSS:", "\nVmRSS: many kB"}) {
    EXPECT_EQ(parse_memory_size(other).resident_bytes, 0) << other;
  }
}

TEST(ProcessMemory, GrowsWithMemoryThatIsWritten) {
  const ProcessMemory memory;
  const MemorySize before = memory.now();
  ASSERT_GT(before.resident_bytes, 0);
  const std::vector<char> touched(std::size_t{64} << 20U, 'x');
  const MemorySize after = memory.now();
  EXPECT_GT(after.resident_bytes, before.resident_bytes + (std::int64_t{32} << 20U));
  EXPECT_GE(after.peak_bytes, after.resident_bytes);
}

}  // namespace
}  // namespace assay::base
