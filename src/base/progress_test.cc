// Exact lines at exact widths, the smoothing of the rate; drawing on a fake terminal in fake time,
// then on a real pseudo-terminal.
#include "base/progress.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <rapidcheck/gtest.h>
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

constexpr std::int64_t kDone = std::int64_t{1} << 30;

ProgressFacts hashing() {
  return {.label = "hashing",
          .done = kDone,
          .total = 4 * kDone,
          .unit = ProgressUnit::kBytes,
          .per_second = 512e6,
          .elapsed = Seconds(2)};
}

TEST(ProgressLine, ShowsHowFarHowFastAndHowLong) {
  EXPECT_EQ(progress_line(hashing(), 80), "hashing  1.00 GiB / 4.00 GiB   25%  512 MB/s  ETA 0:06");
}

TEST(ProgressLine, DropsPartsUntilItFits) {
  const auto at = [](std::size_t columns) { return progress_line(hashing(), columns); };
  EXPECT_EQ(at(54), "hashing  1.00 GiB / 4.00 GiB   25%  512 MB/s  ETA 0:06");
  EXPECT_EQ(at(53), "hashing  1.00 GiB / 4.00 GiB   25%  ETA 0:06");
  EXPECT_EQ(at(43), "hashing   25%  ETA 0:06");
  EXPECT_EQ(at(22), "hashing   25%");
  EXPECT_EQ(at(12), "25%");
  EXPECT_EQ(at(2), "");
  EXPECT_EQ(at(0), "");
}

TEST(ProgressLine, UnknownTotalShowsTheTimeSoFar) {
  const ProgressFacts facts{
      .label = "scanning", .done = 12'345, .per_second = 1234.4, .elapsed = Seconds(75)};
  EXPECT_EQ(progress_line(facts, 80), "scanning  12,345  1,234/s  1:15");
  EXPECT_EQ(progress_line(facts, 16), "scanning  12,345");
  EXPECT_EQ(progress_line(facts, 10), "12,345");
}

TEST(ProgressLine, HundredPercentMeansDone) {
  ProgressFacts facts{.label = "x", .done = 999'999, .total = 1'000'000};
  EXPECT_EQ(progress_line(facts, 80), "x  999,999 / 1,000,000   99%");
  facts.done = 1'000'000;
  EXPECT_EQ(progress_line(facts, 80), "x  1,000,000 / 1,000,000  100%");
  facts.done = 1'000'001;  // the file grew while it was read
  EXPECT_EQ(progress_line(facts, 80), "x  1,000,001 / 1,000,000  100%");
  facts.per_second = 10;
  EXPECT_EQ(progress_line(facts, 80), "x  1,000,001 / 1,000,000  100%  10/s  ETA 0:00");
  facts = {.label = "x", .done = 0, .total = 0};
  EXPECT_EQ(progress_line(facts, 80), "x  0 / 0  100%");
}

TEST(ProgressLine, LongTimesReadAsClockOrDays) {
  const auto eta = [](std::int64_t seconds) {
    return progress_line({.label = "x", .done = 0, .total = seconds, .per_second = 1}, 80);
  };
  EXPECT_EQ(eta(3723), "x  0 / 3,723    0%  1/s  ETA 1:02:03");
  EXPECT_EQ(eta(864'000), "x  0 / 864,000    0%  1/s  ETA 10.0 d");
  EXPECT_EQ(eta(400LL * 86'400), "x  0 / 34,560,000    0%  1/s");  // no more than a guess
}

TEST(ProgressLine, ShortensTheLabelAndShowsItsControlCharacters) {
  const ProgressFacts facts{.label = "日本語の長いファイル名", .done = 1, .total = 2};
  EXPECT_EQ(progress_line(facts, 30), "日本語の…  1 / 2   50%");
  EXPECT_EQ(progress_line({.label = "a\x1b[2J", .done = 1, .total = 2}, 80),
            "a\\x1b[2J  1 / 2   50%");
}

RC_GTEST_PROP(ProgressLine, IsNeverTooWide,
              (const std::string& label, std::int64_t done, std::int64_t total, double rate)) {
  const auto columns = *rc::gen::inRange<std::size_t>(0, 120);
  const auto unit = *rc::gen::element(ProgressUnit::kItems, ProgressUnit::kBytes);
  ProgressFacts facts{.label = label, .done = done, .unit = unit, .per_second = rate};
  if (*rc::gen::arbitrary<bool>()) facts.total = std::max<std::int64_t>(total, 0);
  const std::string line = progress_line(facts, columns);
  RC_ASSERT(display_width(line) <= columns);
  RC_ASSERT(printable(line) == line);
}

TEST(SmoothedRate, IsRightFromTheFirstSample) {
  SmoothedRate rate;
  EXPECT_EQ(rate.per_second(), 0);
  rate.sample(50, 0.1);
  EXPECT_NEAR(rate.per_second(), 500, 1e-9);
  rate.sample(5, 0);  // no time has passed: nothing is learnt
  EXPECT_NEAR(rate.per_second(), 500, 1e-9);
}

TEST(SmoothedRate, FollowsALastingChangeButNotAHiccup) {
  SmoothedRate rate;
  for (int i = 0; i < 200; ++i) rate.sample(10, 0.1);
  rate.sample(0, 0.1);
  EXPECT_GT(rate.per_second(), 95);
  EXPECT_LT(rate.per_second(), 100);
  for (int i = 0; i < 300; ++i) rate.sample(20, 0.1);
  EXPECT_NEAR(rate.per_second(), 200, 1);
}

RC_GTEST_PROP(SmoothedRate, OfASteadyTaskIsItsRateHoweverSampled, ()) {
  const double per_second = *rc::gen::inRange(1, 1'000'000);
  SmoothedRate rate;
  for (const int ms :
       *rc::gen::nonEmpty(rc::gen::container<std::vector<int>>(rc::gen::inRange(1, 20'000)))) {
    rate.sample(per_second * ms / 1000, ms / 1000.0);
    RC_ASSERT(std::abs(rate.per_second() - per_second) < 1e-6 * per_second);
  }
}

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
