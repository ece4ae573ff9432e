#include "observe/collect/process/outside_writers.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "observe/collect/event/event.h"
#include "observe/collect/testing/probe.h"

namespace assay::collect::testing {
namespace {

// A signal between processes: a pipe whose end is closed, because writing would be counted. It is
// given when all processes that hold it have closed it.
class Sign {
 public:
  Sign() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    waiting_.reset(ends[0]);
    giving_.reset(ends[1]);
  }
  void give() { giving_.reset(); }
  void await() {
    char byte = 0;
    EXPECT_EQ(::read(waiting_.get(), &byte, 1), 0);
  }

 private:
  base::UniqueFd waiting_;
  base::UniqueFd giving_;
};

// A process outside the run that has a file open and writes a byte to it on request.
class Outsider {
 public:
  Outsider(const std::string& file, int flags) {
    sigset_t order{};
    ::sigemptyset(&order);
    ::sigaddset(&order, SIGUSR1);
    sigset_t before{};
    ::sigprocmask(SIG_BLOCK, &order, &before);
    pid_ = ::fork();
    if (pid_ == 0) {
      const int held = ::open(file.c_str(), flags | O_APPEND);
      ready_.give();
      int number = 0;
      ::sigwait(&order, &number);
      [[maybe_unused]] const auto count = ::write(held, "x", 1);
      wrote_.give();
      for (;;) ::pause();
    }
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    ready_.give();
    wrote_.give();
    ready_.await();
  }
  Outsider(const Outsider&) = delete;
  Outsider& operator=(const Outsider&) = delete;
  ~Outsider() { end(); }

  void write() {
    ::kill(pid_, SIGUSR1);
    wrote_.await();
  }
  void end() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(std::exchange(pid_, -1), nullptr, 0);
  }

 private:
  pid_t pid_ = -1;
  Sign ready_;
  Sign wrote_;
};

class OutsideWritersTest : public ::testing::Test {
 protected:
  wire::Stamp stamp() {
    struct stat status {};
    EXPECT_EQ(::stat(log_.c_str(), &status), 0);
    return stamp_of(status);
  }
  // As the command has it, at the beginning of a run.
  OutsideWriters begin(int descriptor = 9, bool writable = true) {
    const std::vector<Inherited> files = {
        {.descriptor = descriptor, .writable = writable, .path = log_, .stamp = stamp()}};
    return OutsideWriters(files);
  }

  ProbeFolder place_;
  std::string log_ = place_.file("log");
};

TEST_F(OutsideWritersTest, NoOtherProcessHasItOpen) {
  const OutsideWriters outside = begin();
  EXPECT_FALSE(outside.may_have_written(stamp()));
}

TEST_F(OutsideWritersTest, AWriterThatHasItOpenMayHaveWrittenIt) {
  Outsider program(log_, O_WRONLY);
  const OutsideWriters outside = begin();
  program.write();
  EXPECT_TRUE(outside.may_have_written(stamp()));
}

TEST_F(OutsideWritersTest, AnIdleProcessThatHasItOpenDidNotWriteIt) {
  const Outsider shell(log_, O_WRONLY);
  const OutsideWriters outside = begin();
  EXPECT_FALSE(outside.may_have_written(stamp()));
}

TEST_F(OutsideWritersTest, ReadersDoNotCount) {
  Outsider tail(log_, O_RDONLY);
  Outsider other(place_.file("other"), O_WRONLY);
  const OutsideWriters outside = begin();
  tail.write();
  other.write();
  EXPECT_FALSE(outside.may_have_written(stamp()));
}

TEST_F(OutsideWritersTest, ProcessesThatStartedOrExitedMayHaveWrittenIt) {
  auto gone = std::make_unique<Outsider>(log_, O_RDWR);
  const OutsideWriters first = begin();
  gone.reset();
  EXPECT_TRUE(first.may_have_written(stamp()));
  const OutsideWriters second = begin();
  const Outsider came(log_, O_RDWR);
  EXPECT_TRUE(second.may_have_written(stamp()));
}

TEST_F(OutsideWritersTest, StandardStreamsAndReadOnlyFilesAreNotChecked) {
  Outsider program(log_, O_WRONLY);
  const OutsideWriters output = begin(1);
  const OutsideWriters read = begin(9, false);
  program.write();
  EXPECT_FALSE(output.may_have_written(stamp()));
  EXPECT_FALSE(read.may_have_written(stamp()));
}

}  // namespace
}  // namespace assay::collect::testing
