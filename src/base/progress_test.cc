// Drawing on a fake terminal in fake time, then on a real pseudo-terminal.
#include "base/progress.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>
#include <vector>

#include "base/terminal.h"
#include "base/testing/fake_clock.h"
#include "base/text.h"
#include "base/unique_fd.h"

namespace assay::base {
namespace {

class FakeTerminal final : public ProgressTerminal {
 public:
  [[nodiscard]] bool is_terminal() const override { return terminal_; }
  [[nodiscard]] std::size_t columns() const override { return columns_; }
  void write(std::string_view text) override { writes_.emplace_back(text); }

  bool terminal_ = true;
  std::size_t columns_ = 80;
  std::vector<std::string> writes_;
};

class ProgressTest : public ::testing::Test {
 protected:
  ProgressOptions options(std::optional<std::int64_t> total) {
    return {.label = "work", .total = total, .terminal = &terminal_, .clock = &clock_};
  }

  FakeClock clock_;
  FakeTerminal terminal_;
};

using Writes = std::vector<std::string>;

TEST_F(ProgressTest, DrawsThenClearsItself) {
  {
    Progress progress(options(1000));
    clock_.advance_ms(100);
    progress.advance(100);
    EXPECT_EQ(terminal_.writes_, Writes{"\r\x1b[Kwork  100 / 1,000   10%  1,000/s  ETA 0:01"});
    EXPECT_EQ(progress.done(), 100);
  }
  ASSERT_EQ(terminal_.writes_.size(), 2U);
  EXPECT_EQ(terminal_.writes_[1], "\r\x1b[K");
}

TEST_F(ProgressTest, DrawsAtMostTenTimesASecond) {
  Progress progress(options(std::nullopt));
  for (int i = 0; i < 5000; ++i) {  // five seconds of advances, one each millisecond
    clock_.advance_ms(1);
    progress.advance();
  }
  EXPECT_EQ(terminal_.writes_.size(), 50U);
}

TEST_F(ProgressTest, ATaskThatEndsAtOnceLeavesNoTrace) {
  {
    Progress progress(options(10));
    clock_.advance_ms(99);
    progress.advance(10);
  }
  EXPECT_EQ(terminal_.writes_, Writes{});
}

TEST_F(ProgressTest, SilentWhenQuietOrNoTerminal) {
  terminal_.terminal_ = false;
  ProgressOptions quiet = options(10);
  for (int i = 0; i < 2; ++i) {
    {
      Progress progress(quiet);
      clock_.advance_ms(1000);
      progress.advance();
      progress.finish("done");
      EXPECT_EQ(progress.done(), 1);
    }
    EXPECT_EQ(terminal_.writes_, Writes{});
    terminal_.terminal_ = true;
    quiet.quiet = true;
  }
}

TEST_F(ProgressTest, FinishMayLeaveASummaryAndComesOnce) {
  {
    Progress progress(options(10));
    clock_.advance_ms(100);
    progress.advance();
    progress.finish("hashed 10\tfiles");
    clock_.advance_ms(1000);
    progress.advance();
    progress.finish("again");
  }
  ASSERT_EQ(terminal_.writes_.size(), 2U);
  EXPECT_EQ(terminal_.writes_[1], "\r\x1b[Khashed 10\\x09files\n");
}

TEST_F(ProgressTest, FollowsTheWindowAndLeavesTheLastColumnFree) {
  Progress progress(options(1000));
  for (const std::size_t columns : {80U, 30U, 20U, 8U, 3U, 1U, 0U}) {
    terminal_.columns_ = columns;
    clock_.advance_ms(100);
    progress.advance(10);
    const std::string line = terminal_.writes_.back().substr(kClearLine.size());
    EXPECT_LE(display_width(line), columns > 0 ? columns - 1 : 0) << line;
  }
  EXPECT_EQ(terminal_.writes_.size(), 7U);
}

TEST_F(ProgressTest, EtaOfASteadyTaskOnlyFalls) {
  Progress progress(options(60'000));
  int last = 1 << 20;
  for (int i = 0; i < 500; ++i) {
    clock_.advance_ms(100);
    progress.advance(100);
    const std::string& line = terminal_.writes_.back();
    int minutes = 0;
    int seconds = 0;
    ASSERT_EQ(std::sscanf(line.c_str() + line.find("ETA"), "ETA %d:%d", &minutes, &seconds), 2);
    EXPECT_LE(minutes * 60 + seconds, last);
    last = minutes * 60 + seconds;
  }
  EXPECT_EQ(last, 10);
}

TEST_F(ProgressTest, ManyThreadsMayAdvance) {
  constexpr int kThreads = 4;
  constexpr int kEach = 20'000;
  Progress progress(options(kThreads * kEach));
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < kEach; ++j) {
        clock_.advance_ns(100'000);
        progress.advance();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(progress.done(), kThreads * kEach);
  // 8 s of fake time: at least a few drawings, and never more than ten a second.
  EXPECT_GE(terminal_.writes_.size(), 1U);
  EXPECT_LE(terminal_.writes_.size(), 80U);
}

// Replaces standard error while it exists.
class StderrIs {
 public:
  explicit StderrIs(int fd) : saved_(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3)) {
    ::dup2(fd, STDERR_FILENO);
  }
  ~StderrIs() { ::dup2(saved_.get(), STDERR_FILENO); }
  StderrIs(const StderrIs&) = delete;
  StderrIs& operator=(const StderrIs&) = delete;

 private:
  UniqueFd saved_;
};

void run_on_stderr(FakeClock& clock) {
  Progress progress({.label = "work", .total = 1000, .clock = &clock});
  clock.advance_ms(100);
  progress.advance(100);
}

// A terminal delivers its output in pieces: reads until `most` bytes or half a second of silence.
std::string read_up_to(int fd, std::size_t most) {
  std::string text;
  pollfd ready{fd, POLLIN, 0};
  while (text.size() < most && ::poll(&ready, 1, 500) > 0) {
    char buffer[256];
    const ssize_t count = ::read(fd, buffer, sizeof buffer);
    if (count <= 0) break;
    text.append(buffer, static_cast<std::size_t>(count));
  }
  return text;
}

TEST_F(ProgressTest, OnARealTerminalKeepsToItsWidth) {
  ::setenv("TERM", "xterm", 1);
  int master_fd = -1;
  int slave_fd = -1;
  const winsize size{.ws_row = 24, .ws_col = 24, .ws_xpixel = 0, .ws_ypixel = 0};
  ASSERT_EQ(::openpty(&master_fd, &slave_fd, nullptr, nullptr, &size), 0);
  const UniqueFd master(master_fd);
  const UniqueFd slave(slave_fd);
  {
    const StderrIs replaced(slave.get());
    run_on_stderr(clock_);
    EXPECT_FALSE(progress_on_stderr);
  }
  const std::string expected = "\r\x1b[Kwork   10%  ETA 0:01\r\x1b[K";
  EXPECT_EQ(read_up_to(master.get(), expected.size() + 1), expected);
}

TEST_F(ProgressTest, InAPipeStandardErrorStaysEmpty) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
  const UniqueFd reader(ends[0]);
  const UniqueFd writer(ends[1]);
  {
    const StderrIs replaced(writer.get());
    run_on_stderr(clock_);
  }
  char byte = 0;
  EXPECT_EQ(::read(reader.get(), &byte, 1), -1);
  EXPECT_EQ(errno, EAGAIN);
}

}  // namespace
}  // namespace assay::base
