// The accounts stay exact if a process is killed at any instruction: tested at every one.
#include "observe/wire/gpu_ledger.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

namespace assay::wire {
namespace {

std::uint64_t sum_held(const GpuRegion& region, std::size_t line) {
  std::uint64_t sum = 0;
  for (const GpuSlot& slot : region.slots) sum += slot.used[line].load();
  return sum;
}

TEST(GpuLedger, ALimitIsForAllTogetherAndReachedExactly) {
  const auto region = std::make_unique<GpuRegion>();
  EXPECT_TRUE(hold(*region, 0, 3, 60, 100));
  EXPECT_FALSE(hold(*region, 1, 3, 41, 100));
  EXPECT_EQ(region->slots[1].used[3].load(), 0U);
  EXPECT_TRUE(hold(*region, 1, 3, 40, 100));
  EXPECT_FALSE(hold(*region, 0, 3, 61, 100));
  EXPECT_TRUE(hold(*region, 0, 3, 10, 5));  // less is always allowed
  EXPECT_FALSE(hold(*region, 0, 3, 11, 5));
  EXPECT_EQ(region->devices[3].used.load(), 50U);
  EXPECT_EQ(region->devices[2].used.load(), 0U);
  EXPECT_FALSE(hold(*region, 0, 3, kGpuUnlimited, kGpuUnlimited));  // sums must not overflow
  EXPECT_EQ(region->devices[3].used.load(), 50U);
}

TEST(GpuLedger, NothingEverFallsBelowZero) {
  const auto region = std::make_unique<GpuRegion>();
  ASSERT_TRUE(hold(*region, 0, 0, 100, kGpuUnlimited));
  region->devices[0].used = 30;  // written by another process
  EXPECT_TRUE(hold(*region, 0, 0, 0, kGpuUnlimited));
  EXPECT_EQ(region->devices[0].used.load(), 0U);
  region->devices[0].last = ~std::uint64_t{0};  // a mark of no slot
  EXPECT_TRUE(hold(*region, 0, 0, 7, kGpuUnlimited));
  region->slots[0].entry = 99;
  region->slots[0].entry_device = 12345;
  give_back_all(*region, 0);
  EXPECT_EQ(region->devices[0].used.load(), 0U);
}

// Slots hold, are refused, exit and are cleared in any order; compared with plain sums.
RC_GTEST_PROP(GpuLedger, AgreesWithPlainSums, ()) {
  const auto region = std::make_unique<GpuRegion>();
  std::array<std::array<std::uint64_t, 2>, 4> model{};
  const auto total = [&](std::size_t line) {
    std::uint64_t sum = 0;
    for (const auto& slot : model) sum += slot[line];
    return sum;
  };
  const auto steps = *rc::gen::inRange(1, 200);
  for (int i = 0; i < steps; ++i) {
    const auto slot = *rc::gen::inRange<std::size_t>(0, 4);
    const auto line = *rc::gen::inRange<std::size_t>(0, 2);
    if (*rc::gen::inRange(0, 10) == 0) {
      give_back_all(*region, slot);
      model[slot] = {};
    } else {
      const auto after = *rc::gen::inRange<std::uint64_t>(0, 1000);
      const auto limit = *rc::gen::inRange<std::uint64_t>(0, 2000);
      const bool fits =
          after <= model[slot][line] || total(line) - model[slot][line] + after <= limit;
      RC_ASSERT(hold(*region, slot, line, after, limit) == fits);
      if (fits) model[slot][line] = after;
    }
    for (std::size_t k = 0; k < 2; ++k) {
      RC_ASSERT(region->devices[k].used.load() == total(k));
      RC_ASSERT(sum_held(*region, k) == total(k));
    }
  }
}

TEST(GpuLedger, ConcurrentReservationsNeverExceedTheLimit) {
  const auto region = std::make_unique<GpuRegion>();
  constexpr std::uint64_t kLimit = 1000;
  std::atomic<bool> exceeded{false};
  std::vector<std::thread> threads;
  for (std::size_t slot = 0; slot < 4; ++slot) {
    threads.emplace_back([&, slot] {
      std::uint64_t random = slot + 1;
      for (int i = 0; i < 30'000; ++i) {
        random = gpu_mix(random);
        hold(*region, slot, 0, random % 600, kLimit);
        if (region->devices[0].used.load() > kLimit) exceeded = true;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(exceeded);
  EXPECT_EQ(region->devices[0].used.load(), sum_held(*region, 0));
  for (std::size_t slot = 0; slot < 4; ++slot) give_back_all(*region, slot);
  EXPECT_EQ(region->devices[0].used.load(), 0U);
}

// The state of a region shared with a traced process between two of its instructions.
class SharedRegion {
 public:
  SharedRegion() {
    void* memory = ::mmap(nullptr, sizeof(GpuRegion), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    region_ = static_cast<GpuRegion*>(memory);
  }
  ~SharedRegion() { ::munmap(region_, sizeof(GpuRegion)); }
  SharedRegion(const SharedRegion&) = delete;
  SharedRegion& operator=(const SharedRegion&) = delete;
  GpuRegion& operator*() const { return *region_; }
  // The parts that these tests use.
  void copy_to(GpuRegion& other) const {
    std::memcpy(static_cast<void*>(other.devices), region_->devices, 2 * sizeof(GpuDevice));
    std::memcpy(static_cast<void*>(other.slots), region_->slots, 3 * sizeof(GpuSlot));
  }

 private:
  GpuRegion* region_;
};

// Runs `work` in a child, instruction by instruction, and `look` between any two. False:
// single-stepping is not permitted here.
bool step_through(const std::function<void()>& work, const std::function<void(int)>& look) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(9);
    ::raise(SIGSTOP);
    work();
    ::raise(SIGSTOP);
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (!WIFSTOPPED(status)) return false;
  int steps = 0;
  for (; steps < 500'000; ++steps) {
    if (::ptrace(PTRACE_SINGLESTEP, child, nullptr, nullptr) != 0) break;
    ::waitpid(child, &status, 0);
    if (!WIFSTOPPED(status) || WSTOPSIG(status) != SIGTRAP) break;
    look(steps);
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, &status, 0);
  EXPECT_GT(steps, 100);
  return true;
}

TEST(GpuLedger, AnOwnerKilledAtAnyInstructionLosesNothing) {
  const SharedRegion shared;
  const auto copy = std::make_unique<GpuRegion>();
  GpuRegion& region = *shared;
  ASSERT_TRUE(hold(region, 0, 0, 1000, kGpuUnlimited));
  const bool traced = step_through(
      [&] {
        hold(region, 1, 0, 100, 2000);
        hold(region, 1, 1, 7, 2000);
        hold(region, 1, 0, 1500, 2000);  // refused
        hold(region, 1, 0, 30, 2000);
      },
      [&](int step) {
        // Killed at once, and killed after others have continued.
        for (const std::uint64_t other : {0UL, 1UL, 400UL}) {
          shared.copy_to(*copy);
          if (other != 0) {
            ASSERT_TRUE(hold(*copy, 0, 0, other, kGpuUnlimited));
            ASSERT_TRUE(hold(*copy, 2, 0, 5, kGpuUnlimited));
          }
          settle(*copy, 1);
          ASSERT_EQ(copy->devices[0].used.load(), sum_held(*copy, 0)) << step;
          ASSERT_EQ(copy->devices[1].used.load(), sum_held(*copy, 1)) << step;
          give_back_all(*copy, 1);
          const std::uint64_t living = other == 0 ? region.slots[0].used[0].load() : other + 5;
          ASSERT_EQ(copy->devices[0].used.load(), living) << step;
          ASSERT_EQ(copy->devices[1].used.load(), 0U) << step;
        }
        // Running processes interfere, too, but not so often that it never succeeds.
        if (step % 97 == 0 && step < 40 * 97) {
          ASSERT_TRUE(hold(region, 0, 0, step % 2 == 0 ? 1000U : 1001U, kGpuUnlimited));
        }
      });
  if (!traced) GTEST_SKIP() << "processes cannot be traced here";
  EXPECT_EQ(region.slots[1].used[0].load(), 30U);
  EXPECT_EQ(region.devices[0].used.load(), sum_held(region, 0));
}

TEST(GpuLedger, AProcessThatClearsASlotMayBeKilledAtAnyInstruction) {
  const SharedRegion shared;
  const auto copy = std::make_unique<GpuRegion>();
  GpuRegion& region = *shared;
  ASSERT_TRUE(hold(region, 0, 0, 1000, kGpuUnlimited));
  ASSERT_TRUE(hold(region, 1, 0, 300, kGpuUnlimited));
  ASSERT_TRUE(hold(region, 1, 1, 20, kGpuUnlimited));
  const bool traced = step_through([&] { give_back_all(region, 1); },
                                   [&](int step) {
                                     shared.copy_to(*copy);
                                     if (step % 2 == 0) hold(*copy, 2, 0, 0, kGpuUnlimited);
                                     give_back_all(*copy, 1);
                                     ASSERT_EQ(copy->devices[0].used.load(), 1000U) << step;
                                     ASSERT_EQ(copy->devices[1].used.load(), 0U) << step;
                                   });
  if (!traced) GTEST_SKIP() << "processes cannot be traced here";
  EXPECT_EQ(region.devices[0].used.load(), 1000U);
}

}  // namespace
}  // namespace assay::wire
