// Turns with a simulated clock and GPU, so that shares can be checked exactly: the GPU records the
// time of each run.
#include "observe/shim/gpu/pace/turn_rules.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <set>
#include <thread>
#include <utility>
#include <vector>

namespace assay::gpu {
namespace {

constexpr std::uint64_t kTick = 50'000;
constexpr std::uint64_t kMillisecond = 1'000'000;
constexpr std::uint64_t kSecond = 1'000'000'000;

bool nobody_died(const TurnProcess&) {
  return true;
}
bool everybody_died(const TurnProcess&) {
  return false;
}

// A program that launches kernels whenever it wants and is allowed to.
struct TurnProgram {
  wire::GpuShare share;
  std::uint64_t kernel = 100'000;                      // duration of one
  std::function<bool(std::uint64_t)> wants = nullptr;  // null: always
  bool dead = false;                                   // it was killed, and its work with it
  std::size_t row = kNoTurnRow;
  TurnProcess* place = nullptr;
  std::uint64_t queued = 0;  // on the device
  std::uint64_t busy = 0;
  std::uint64_t busy_from = 0;
};

class Machine {
 public:
  std::size_t add(const TurnProgram& program) {
    TurnProgram added = program;
    added.row = join_turns(device(), 100 + programs_.size(), now_);
    set_share(device().runs[added.row], added.share);
    added.place = &join_run(device().runs[added.row], 1000 + programs_.size(), 1, nobody_died);
    programs_.push_back(added);
    return programs_.size() - 1;
  }
  TurnProgram& operator[](std::size_t i) { return programs_[i]; }
  TurnDevice& device() { return *device_; }
  [[nodiscard]] std::uint64_t now() const { return now_; }

  void run(std::uint64_t time) {
    for (const std::uint64_t end = now_ + time; now_ < end; now_ += kTick) {
      serve();
      for (std::size_t i = 0; i < programs_.size(); ++i)
        step(programs_[(i + turn_) % programs_.size()]);
      ++turn_;
    }
  }
  // The share of each over some time, in thousandths.
  std::vector<double> shares(std::uint64_t time) {
    std::vector<std::uint64_t> before;
    for (const TurnProgram& program : programs_) before.push_back(program.busy);
    run(time);
    std::vector<double> out;
    for (std::size_t i = 0; i < programs_.size(); ++i) {
      out.push_back(1000.0 * static_cast<double>(programs_[i].busy - before[i]) /
                    static_cast<double>(time));
    }
    return out;
  }

 private:
  // As a GPU shared by several processes does: in equal parts.
  void serve() {
    std::uint64_t active = 0;
    for (const TurnProgram& program : programs_) active += program.queued > 0 ? 1 : 0;
    for (TurnProgram& program : programs_) {
      if (program.queued == 0) continue;
      const std::uint64_t done = std::min(program.queued, kTick / active);
      program.queued -= done;
      program.busy += done;
    }
  }
  void step(TurnProgram& program) {
    if (program.dead) {
      program.queued = 0;
      return;
    }
    if (program.busy_from != 0) {
      charge_turn(device(), program.row, program.busy_from, now_);
      program.busy_from = program.queued > 0 ? now_ : 0;
    }
    if (program.wants && !program.wants(now_)) return;
    if (!take_turn(device(), program.row, now_, nobody_died).mine) return;
    const TurnDecision answer = may_go_on(device(), program.row, now_, program.queued);
    if (answer == TurnDecision::kStop && program.queued == 0) end_turn(device(), program.row, now_);
    if (answer != TurnDecision::kGo || program.queued > 2 * kMillisecond) return;
    program.queued += program.kernel * std::max<std::uint64_t>(1, kMillisecond / program.kernel);
    if (program.busy_from == 0) program.busy_from = now_;
    program.place->until_ns.store(now_ + program.queued);
  }

  std::unique_ptr<GpuTurns> turns_ = std::make_unique<GpuTurns>();
  TurnDevice* device_ = turn_device(*turns_, 77);
  std::uint64_t now_ = 1000 * kSecond;
  std::size_t turn_ = 0;
  std::vector<TurnProgram> programs_;
};

TurnProgram with_share(std::uint32_t thousandths, bool borrow = false) {
  TurnProgram program;
  program.share.thousandths = thousandths;
  program.share.borrow = borrow;
  return program;
}
TurnProgram with_priority(wire::GpuPriority priority) {
  TurnProgram program;
  program.share.priority = priority;
  return program;
}

TEST(GpuTurns, SharesAreKeptInEverySecond) {
  for (const auto& [first, second] : {std::pair{300U, 700U}, {100U, 900U}, {500U, 500U}}) {
    Machine machine;
    machine.add(with_share(first));
    machine.add(with_share(second));
    machine.run(100 * kMillisecond);
    for (int window = 0; window < 5; ++window) {
      const std::vector<double> shares = machine.shares(kSecond);
      EXPECT_NEAR(shares[0], first, 10) << window;
      EXPECT_NEAR(shares[1], second, 20) << window;
      EXPECT_GE(shares[0] + shares[1], 980) << window;
    }
  }
}

TEST(GpuTurns, ACapHoldsAlone) {
  for (const std::uint32_t share : {50U, 300U, 900U}) {
    Machine machine;
    machine.add(with_share(share));
    machine.run(100 * kMillisecond);
    for (int window = 0; window < 3; ++window) EXPECT_NEAR(machine.shares(kSecond)[0], share, 15);
  }
}

TEST(GpuTurns, CapsLeaveTimeUnused) {
  Machine machine;
  machine.add(with_share(200));
  machine.add(with_share(300));
  machine.run(100 * kMillisecond);
  const std::vector<double> shares = machine.shares(kSecond);
  EXPECT_NEAR(shares[0], 200, 15);
  EXPECT_NEAR(shares[1], 300, 15);
}

TEST(GpuTurns, ABorrowerGetsUnusedTime) {
  Machine machine;
  machine.add(with_share(300, true));
  EXPECT_GE(machine.shares(kSecond)[0], 990);
  // A run arrives that is entitled to most of it.
  machine.add(with_share(700));
  machine.run(100 * kMillisecond);
  const std::vector<double> shares = machine.shares(kSecond);
  EXPECT_NEAR(shares[0], 300, 20);
  EXPECT_NEAR(shares[1], 700, 20);
}

TEST(GpuTurns, MoreThanThereIsIsDividedInProportion) {
  Machine machine;
  machine.add(with_share(800));
  machine.add(with_share(800));
  machine.add(with_share(400));
  machine.run(200 * kMillisecond);
  const std::vector<double> shares = machine.shares(2 * kSecond);
  EXPECT_NEAR(shares[0], 400, 20);
  EXPECT_NEAR(shares[1], 400, 20);
  EXPECT_NEAR(shares[2], 200, 20);
}

TEST(GpuTurns, KernelsOfVeryDifferentLength) {
  Machine machine;
  TurnProgram longer = with_share(300);
  longer.kernel = 10 * kMillisecond;
  machine.add(longer);
  TurnProgram shorter = with_share(700);
  shorter.kernel = 2'000;
  machine.add(shorter);
  machine.run(100 * kMillisecond);
  const std::vector<double> shares = machine.shares(2 * kSecond);
  EXPECT_NEAR(shares[0], 300, 20);
  EXPECT_NEAR(shares[1], 700, 20);
}

// A kernel that is longer than a whole period: its time becomes a debt, and is paid.
TEST(GpuTurns, AKernelLongerThanAPeriod) {
  Machine machine;
  TurnProgram longer = with_share(100);
  longer.kernel = 60 * kMillisecond;
  machine.add(longer);
  machine.add(with_share(900));
  machine.run(kSecond);
  const std::vector<double> shares = machine.shares(6 * kSecond);
  EXPECT_NEAR(shares[0], 100, 20);
  EXPECT_NEAR(shares[1], 900, 30);
}

TEST(GpuTurns, PriorityTakesWhatItWantsWithinMilliseconds) {
  Machine machine;
  machine.add(with_priority(wire::GpuPriority::kLow));
  TurnProgram high = with_priority(wire::GpuPriority::kHigh);
  const std::uint64_t begin = machine.now() + 100 * kMillisecond;
  high.wants = [=](std::uint64_t now) { return now >= begin; };
  machine.add(high);
  machine.run(100 * kMillisecond);
  EXPECT_GE(machine[0].busy, 98 * kMillisecond);
  EXPECT_GE(machine.shares(50 * kMillisecond)[1], 900);
  const std::vector<double> shares = machine.shares(kSecond);
  EXPECT_GE(shares[1], 960);
  EXPECT_GT(shares[0], 0);  // and the other does not starve
  machine[1].wants = [](std::uint64_t) { return false; };
  EXPECT_GE(machine.shares(50 * kMillisecond)[0], 900);
}

TEST(GpuTurns, KilledProcessesAreNotWaitedForLong) {
  Machine machine;
  machine.add(with_share(700));
  machine.add(with_share(300, true));
  machine.run(kSecond + 3 * kMillisecond);
  for (int tried = 0; tried < 20; ++tried) {
    machine[0].dead = true;  // at any point of its turn
    machine.run(10 * kMillisecond);
    EXPECT_GE(machine.shares(50 * kMillisecond)[1], 980);
    machine[0].dead = false;
    machine.run(31 * kMillisecond + static_cast<std::uint64_t>(tried) * 1'234'000);
  }
}

// The killed process had promised work for an hour.
TEST(GpuTurns, PromisesOfKilledProcessesAreIgnored) {
  const auto turns = std::make_unique<GpuTurns>();
  TurnDevice& device = *turn_device(*turns, 5);
  const std::uint64_t now = 50 * kSecond;
  const std::size_t dead = join_turns(device, 1, now);
  set_share(device.runs[dead], {});
  join_run(device.runs[dead], 9, 1, nobody_died).until_ns.store(now + 3600 * kSecond);
  ASSERT_TRUE(take_turn(device, dead, now, nobody_died).mine);
  const std::size_t row = join_turns(device, 2, now);
  set_share(device.runs[row], {});
  EXPECT_FALSE(take_turn(device, row, now + kMillisecond, nobody_died).mine);
  EXPECT_TRUE(take_turn(device, row, now + 2 * kMillisecond, everybody_died).mine);
  EXPECT_EQ(may_go_on(device, dead, now + 6 * kMillisecond, 0), TurnDecision::kLost);
  EXPECT_FALSE(end_turn(device, dead, now + 6 * kMillisecond));
}

// A run that computes between its kernels keeps its turn; an idle one does not.
TEST(GpuTurns, AnIdleHolderGivesItsTurnAway) {
  Machine machine;
  TurnProgram sometimes = with_share(500);
  sometimes.wants = [](std::uint64_t now) { return now / (100 * kMillisecond) % 2 == 0; };
  machine.add(sometimes);
  machine.add(with_share(500, true));
  machine.run(kSecond);
  const std::vector<double> shares = machine.shares(2 * kSecond);
  EXPECT_GE(shares[0], 250);  // half of its half, and saved credit
  EXPECT_LE(shares[0], 400);
  EXPECT_GE(shares[0] + shares[1], 980);
}

TEST(GpuTurns, AShareIsChangedWhileItIsUsed) {
  Machine machine;
  machine.add(with_share(300));
  machine.add(with_share(700, true));
  machine.run(kSecond);
  set_share(machine.device().runs[machine[0].row], {.thousandths = 600});
  set_share(machine.device().runs[machine[1].row], {.thousandths = 400});
  machine.run(50 * kMillisecond);
  const std::vector<double> shares = machine.shares(kSecond);
  EXPECT_NEAR(shares[0], 600, 20);
  EXPECT_NEAR(shares[1], 400, 20);
}

TEST(GpuTurns, TimeIsChargedOnce) {
  const auto turns = std::make_unique<GpuTurns>();
  TurnDevice& device = *turn_device(*turns, 5);
  EXPECT_EQ(charge_turn(device, 0, 100, 200), 100U);
  EXPECT_EQ(charge_turn(device, 0, 150, 220), 20U);
  EXPECT_EQ(charge_turn(device, 0, 0, 210), 0U);
  EXPECT_EQ(charge_turn(device, 0, 300, 310), 10U);
  EXPECT_EQ(device.runs[0].busy_ns.load(), 130U);
}

TEST(GpuTurns, RowsOfExitedRunsAreReused) {
  const auto turns = std::make_unique<GpuTurns>();
  TurnDevice& device = *turn_device(*turns, 5);
  const std::uint64_t now = 50 * kSecond;
  std::vector<std::size_t> rows;
  for (std::uint64_t run = 1; run <= kTurnRuns; ++run) rows.push_back(join_turns(device, run, now));
  EXPECT_EQ(std::set<std::size_t>(rows.begin(), rows.end()).size(), kTurnRuns);
  EXPECT_EQ(join_turns(device, 17, now), rows[16]);
  EXPECT_EQ(join_turns(device, 1000, now), kNoTurnRow);
  device.runs[rows[5]].seen_ns.store(now - 11 * kSecond);
  EXPECT_EQ(join_turns(device, 1000, now), rows[5]);
  EXPECT_EQ(join_turns(device, 6, now), kNoTurnRow);
}

// Processes that start together are one run all the same, and keep what they wrote in its row.
TEST(GpuTurns, SiblingsThatStartTogetherMeetInOneRow) {
  for (std::uint64_t round = 0; round < 300; ++round) {
    const auto turns = std::make_unique<GpuTurns>();
    TurnDevice& device = *turn_device(*turns, 5);
    const std::uint64_t now = 50 * kSecond;
    // The table is not empty, and some of it is old.
    for (std::uint64_t run = 1; run <= 40; ++run) {
      const std::size_t row = join_turns(device, run, now);
      if (run % 2 == 0) device.runs[row].seen_ns.store(now - 11 * kSecond);
    }
    constexpr std::size_t kSiblings = kTurnProcesses;
    std::array<std::size_t, kSiblings> rows{};
    std::array<TurnProcess*, kSiblings> places{};
    std::atomic<std::size_t> ready{0};
    std::vector<std::thread> siblings;
    for (std::size_t i = 0; i < kSiblings; ++i) {
      siblings.emplace_back([&, i] {
        for (++ready; ready < kSiblings;) std::this_thread::yield();
        rows[i] = join_turns(device, 1000 + round, now);
        places[i] = &join_run(device.runs[rows[i]], 1 + i, 1, nobody_died);
      });
    }
    for (std::thread& sibling : siblings) sibling.join();
    for (std::size_t i = 0; i < kSiblings; ++i) {
      ASSERT_EQ(rows[i], rows[0]) << round;
      ASSERT_EQ(places[i]->process.load(), 1 + i) << round;
    }
    const auto has_rows =
        std::count_if(std::begin(device.runs), std::end(device.runs),
                      [&](const TurnRun& run) { return run.run.load() == 1000 + round; });
    ASSERT_EQ(has_rows, 1) << round;
  }
}

// A file with arbitrary contents: no run waits for a turn without a holder.
TEST(GpuTurns, ACorruptFileDoesNotBlock) {
  for (const std::uint64_t seed : {1U, 2U, 3U, 4U, 5U}) {
    const auto turns = std::make_unique<GpuTurns>();
    TurnDevice& device = *turn_device(*turns, 5);
    std::uint64_t value = seed;
    for (std::size_t i = 8; i + 8 <= sizeof device; i += 8) {
      value = wire::gpu_mix(value + i);
      std::memcpy(reinterpret_cast<char*>(&device) + i, &value, 8);
    }
    std::uint64_t now = 50 * kSecond;
    const std::size_t row = join_turns(device, 7, now);
    ASSERT_NE(row, kNoTurnRow);
    set_share(device.runs[row], {.thousandths = 500});
    std::uint64_t busy = 0;
    for (const std::uint64_t end = now + 3 * kSecond; now < end; now += kMillisecond) {
      if (!take_turn(device, row, now, everybody_died).mine) continue;
      if (may_go_on(device, row, now, 0) != TurnDecision::kGo) {
        end_turn(device, row, now);
        continue;
      }
      charge_turn(device, row, now, now + kMillisecond);
      busy += kMillisecond;
    }
    EXPECT_GT(busy, kSecond) << seed;
    EXPECT_LT(busy, 2 * kSecond) << seed;
  }
}

TEST(GpuTurns, AFileIsMadeOnceAndKnownAgain) {
  const int file = ::memfd_create("turns", MFD_CLOEXEC);
  ASSERT_TRUE(make_gpu_turns(file));
  struct stat status {};
  ASSERT_EQ(::fstat(file, &status), 0);
  EXPECT_GE(status.st_blocks * 512, static_cast<off_t>(sizeof(GpuTurns)));  // no holes
  EXPECT_TRUE(make_gpu_turns(file));
  const std::uint64_t other = 99;
  ASSERT_EQ(::pwrite(file, &other, sizeof other, 8), static_cast<ssize_t>(sizeof other));
  EXPECT_FALSE(make_gpu_turns(file));
  ::close(file);
  EXPECT_FALSE(make_gpu_turns(-1));
}

// For any runs: none gets more than its share, and all time that is wanted and allowed is used.
RC_GTEST_PROP(GpuTurns, CapsHoldAndTimeIsUsed, ()) {
  Machine machine;
  const auto runs = *rc::gen::inRange<std::size_t>(1, 5);
  double allowed = 0;
  for (std::size_t i = 0; i < runs; ++i) {
    TurnProgram program = with_share(*rc::gen::inRange<std::uint32_t>(30, 1000));
    program.kernel = *rc::gen::element<std::uint64_t>(2'000, 100'000, 3 * kMillisecond);
    allowed += program.share.thousandths;
    machine.add(program);
  }
  machine.run(200 * kMillisecond);
  const std::vector<double> shares = machine.shares(kSecond);
  double sum = 0;
  for (std::size_t i = 0; i < runs; ++i) {
    RC_ASSERT(shares[i] <= machine[i].share.thousandths + 25.0);
    sum += shares[i];
  }
  RC_ASSERT(sum >= std::min(allowed, 1000.0) - 45);
}

}  // namespace
}  // namespace assay::gpu
