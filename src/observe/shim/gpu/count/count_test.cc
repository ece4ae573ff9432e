// Counting is exact: the region's counts equal the driver's, whatever threads and processes do, and
// however they end.
#include <gtest/gtest.h>
#include <unistd.h>

#include <random>
#include <thread>
#include <vector>

#include "observe/shim/gpu/testing/run.h"

namespace assay::gpu {
namespace {

using testing::GpuTestRun;
using testing::ProgramOutput;
using wire::GpuQuantity;
using Total = wire::GpuTotals::Total;

TEST(GpuCount, LaunchesOfSeveralThreads) {
  const GpuTestRun run;
  ASSERT_TRUE(run.ready());
  const ProgramOutput ran = run.probe("threads 8 20000");
  ASSERT_EQ(ran.status, 0) << ran.text;
  EXPECT_EQ(ran.values.at("cuLaunchKernel"), 160000);
  EXPECT_EQ(run.total(GpuQuantity::kKernel).calls, 160000);
}

TEST(GpuCount, TwoThreadsHaveTwoBlocks) {
  const GpuTestRun run;
  const ProgramOutput ran = run.probe("threads 2 500000");
  ASSERT_EQ(ran.status, 0) << ran.text;
  EXPECT_EQ(run.total(GpuQuantity::kKernel).calls, 1000000);
  EXPECT_LE(run.region().header.next_block.load(), 2);
}

TEST(GpuCount, ThreadsThatComeAndGoUseTheSameBlock) {
  const GpuTestRun run;
  const ProgramOutput ran = run.probe("churn 5000");
  ASSERT_EQ(ran.status, 0) << ran.text;
  EXPECT_EQ(run.total(GpuQuantity::kKernel).calls, ran.values.at("cuLaunchKernel"));
  EXPECT_EQ(run.region().header.next_block.load(), 1);
  EXPECT_EQ(run.region().header.lost_threads.load(), 0);
}

TEST(GpuCount, LaunchesFromAThreadsLastDestructors) {
  const GpuTestRun run;
  const ProgramOutput ran = run.probe("late_thread 100");
  ASSERT_EQ(ran.status, 0) << ran.text;
  EXPECT_EQ(ran.values.at("cuLaunchKernel"), 102);
  EXPECT_EQ(run.total(GpuQuantity::kKernel).calls, 102);
}

TEST(GpuCount, ChildrenOfAForkCountForThemselves) {
  const GpuTestRun run;
  const ProgramOutput ran = run.probe("forks 4 50000");
  ASSERT_EQ(ran.status, 0) << ran.text;
  EXPECT_EQ(ran.values.at("cuLaunchKernel"), 50005);  // the parent's
  EXPECT_EQ(run.total(GpuQuantity::kKernel).calls, 250005);
  EXPECT_EQ(run.region().header.next_slot.load(), 5);
}

TEST(GpuCount, ProgramsThatExec) {
  const GpuTestRun run;
  const ProgramOutput ran = run.probe("execs 6");
  ASSERT_EQ(ran.status, 0) << ran.text;
  EXPECT_EQ(run.total(GpuQuantity::kKernel).calls, 42);
}

TEST(GpuCount, WhatAKilledProcessCountedStays) {
  const GpuTestRun run;
  const ProgramOutput killed = run.probe("until_killed 1234");
  EXPECT_TRUE(WIFSIGNALED(killed.status) || killed.status != 0);
  EXPECT_EQ(run.total(GpuQuantity::kKernel).calls, 1234);
  const ProgramOutput other = run.probe("threads 2 10");
  EXPECT_EQ(other.status, 0);
  EXPECT_EQ(run.total(GpuQuantity::kKernel).calls, 1254);
}

// Killed while they claim slots and blocks, launch, end threads: later processes are not affected.
TEST(GpuCount, ProcessesKilledAtAnyMomentBlockNoOther) {
  const GpuTestRun run;
  std::minstd_rand random(1);
  for (int round = 0; round < 60; ++round) {
    const std::string line = "exec timeout -s KILL 0.00" + std::to_string(1000 + random() % 9000) +
                             " " ASSAY_GPU_PROBE " churn 1000000";
    (void)run.run("sh -c '" + line + "'");
    if (round % 10 != 9) continue;
    const std::uint64_t before = run.total(GpuQuantity::kKernel).calls;
    const ProgramOutput ran = run.probe("threads 2 1000");
    ASSERT_EQ(ran.status, 0) << ran.text;
    EXPECT_EQ(run.total(GpuQuantity::kKernel).calls, before + 2000);
  }
  EXPECT_GT(run.total(GpuQuantity::kKernel).calls, 12000);
}

// When all slots and blocks are in use, those of exited processes are reused.
TEST(GpuCount, SlotsAndBlocksOfExitedProcessesAreReused) {
  const GpuTestRun run;
  for (int i = 0; i < 3; ++i) (void)run.probe("until_killed 100");
  run.region().header.next_slot.store(wire::kGpuSlots);
  run.region().header.next_block.store(wire::kGpuBlocks);
  const ProgramOutput ran = run.probe("threads 1 11");
  ASSERT_EQ(ran.status, 0) << ran.text;
  EXPECT_EQ(run.total(GpuQuantity::kKernel).calls, 311);
  EXPECT_EQ(run.region().header.lost_threads.load(), 0);
  // Three threads at once: one uses the slot's own block, the others take over blocks.
  const ProgramOutput more = run.probe("threads 3 100000");
  ASSERT_EQ(more.status, 0) << more.text;
  EXPECT_EQ(run.total(GpuQuantity::kKernel).calls, 300311);
}

TEST(GpuCount, ASlotComesWithItsBlocks) {
  const GpuTestRun run;
  (void)run.probe("until_killed 100");
  run.region().header.next_slot.store(wire::kGpuSlots);
  run.region().header.next_block.store(wire::kGpuBlocks);
  const ProgramOutput ran = run.probe("threads 1 11");
  ASSERT_EQ(ran.status, 0) << ran.text;
  EXPECT_EQ(run.total(GpuQuantity::kKernel).calls, 111);
  EXPECT_EQ(run.region().header.lost_threads.load(), 0);
}

TEST(GpuCount, WithoutAFreeBlockThreadsAreCountedAsLost) {
  const GpuTestRun run;
  run.region().header.next_block.store(wire::kGpuBlocks);
  const ProgramOutput ran = run.probe("threads 2 10");
  ASSERT_EQ(ran.status, 0) << ran.text;
  EXPECT_EQ(ran.values.at("cuLaunchKernel"), 20);
  EXPECT_EQ(run.total(GpuQuantity::kKernel).calls, 0);
  EXPECT_EQ(run.region().header.lost_threads.load(), 2);
}

TEST(GpuCount, ManyProcessesAtOnce) {
  const GpuTestRun run;
  constexpr int kProcesses = 100;
  std::vector<std::thread> starters;
  for (int i = 0; i < 4; ++i) {
    starters.emplace_back([&] {
      for (int k = 0; k < kProcesses / 4; ++k) EXPECT_EQ(run.probe("threads 2 7").status, 0);
    });
  }
  for (std::thread& starter : starters) starter.join();
  EXPECT_EQ(run.total(GpuQuantity::kKernel).calls, kProcesses * 14);
  EXPECT_EQ(run.region().header.next_slot.load(), kProcesses);
}

TEST(GpuCount, ProcessesOfOtherPidNamespaces) {
  const GpuTestRun run;
  for (int i = 0; i < 3; ++i) {
    const ProgramOutput ran =
        run.run("unshare --pid --fork --mount-proc " ASSAY_GPU_PROBE " threads 2 50");
    if (ran.status != 0) GTEST_SKIP() << ran.text;
  }
  EXPECT_EQ(run.total(GpuQuantity::kKernel).calls, 300);
  EXPECT_EQ(run.region().header.next_slot.load(), 3);
}

TEST(GpuCount, ProgramsThatCloseAllDescriptors) {
  const GpuTestRun run;
  const ProgramOutput ran = run.probe("closes_everything 50");
  ASSERT_EQ(ran.status, 0) << ran.text;
  EXPECT_EQ(run.total(GpuQuantity::kKernel).calls, 100);
}

TEST(GpuCount, ChildrenOfProgramsThatCloseAllDescriptors) {
  const GpuTestRun run;
  const std::string file = std::string(run.path()) + ".own";
  const ProgramOutput ran = run.probe("closes_and_forks 30 " + file);
  ::unlink(file.c_str());
  ASSERT_EQ(ran.status, 0) << ran.text;
  EXPECT_EQ(ran.values.at("locked"), 0);
  EXPECT_EQ(run.total(GpuQuantity::kKernel).calls, 60);
  EXPECT_EQ(run.region().header.next_slot.load(), 2);
}

TEST(GpuCount, LaunchesAtExit) {
  const GpuTestRun run;
  EXPECT_EQ(run.probe("at_exit").status, 0);
  EXPECT_EQ(run.total(GpuQuantity::kKernel).calls, 10);
}

TEST(GpuCount, ADriverThatIsClosedAndOpenedAgain) {
  const GpuTestRun run;
  const ProgramOutput ran = run.probe("reload 20");
  ASSERT_EQ(ran.status, 0) << ran.text;
  EXPECT_EQ(ran.values.at("cuLaunchKernel"), 40);
  EXPECT_EQ(run.total(GpuQuantity::kKernel).calls, 40);
}

TEST(GpuCount, EveryKindOfWorkWithItsBytes) {
  const GpuTestRun run;
  const ProgramOutput ran = run.probe("every_kind");
  ASSERT_EQ(ran.status, 0) << ran.text;
  EXPECT_EQ(run.total(GpuQuantity::kKernel).calls, 3);
  EXPECT_EQ(run.total(GpuQuantity::kKernelEx).calls, 2);
  EXPECT_EQ(run.total(GpuQuantity::kCooperative).calls, 2);
  EXPECT_EQ(run.total(GpuQuantity::kSyncContext).calls, 1);
  EXPECT_EQ(run.total(GpuQuantity::kSyncStream).calls, 2);
  EXPECT_EQ(run.total(GpuQuantity::kSyncEvent).calls, 1);
  EXPECT_EQ(run.total(GpuQuantity::kModule).calls, 2);
  EXPECT_EQ(run.total(GpuQuantity::kCopyToDevice), (Total{5, 4100}));
  EXPECT_EQ(run.total(GpuQuantity::kCopyToHost), (Total{1, 30}));
  EXPECT_EQ(run.total(GpuQuantity::kCopyOnDevice), (Total{2, 28}));
  EXPECT_EQ(run.total(GpuQuantity::kCopyUnified), (Total{4, 24}));
  EXPECT_EQ(run.total(GpuQuantity::kCopyToPeer), (Total{1, 11}));
  EXPECT_EQ(run.total(GpuQuantity::kCopyArray), (Total{1, 13}));
  EXPECT_EQ(run.total(GpuQuantity::kSet), (Total{4, 820}));
}

TEST(GpuCount, AllocationsOfEveryAllocator) {
  const GpuTestRun run;
  const ProgramOutput ran = run.probe("allocations", "FAKECUDA_MEMORY=1000000");
  ASSERT_EQ(ran.status, 0) << ran.text;
  EXPECT_EQ(ran.values.at("too_much"), 2);      // the driver's out of memory
  EXPECT_EQ(ran.values.at("null"), 1);          // and its invalid value
  EXPECT_EQ(ran.values.at("unknown_free"), 1);  // passed to the driver
  EXPECT_EQ(ran.values.at("null_free"), 0);
  EXPECT_EQ(ran.values.at("twice"), 1);
  EXPECT_EQ(run.total(GpuQuantity::kAllocDevice), (Total{2, 1000 + 512 * 10}));
  EXPECT_EQ(run.total(GpuQuantity::kAllocAsync), (Total{2, 6000}));
  EXPECT_EQ(run.total(GpuQuantity::kAllocVirtual), (Total{1, 8000}));
  EXPECT_EQ(run.total(GpuQuantity::kAllocManaged), (Total{1, 16000}));
  EXPECT_EQ(run.total(GpuQuantity::kAllocArray), (Total{1, 1600}));
  EXPECT_EQ(run.total(GpuQuantity::kAllocHost), (Total{1, 77}));
  EXPECT_EQ(run.total(GpuQuantity::kRefused).calls, 2);
  EXPECT_EQ(run.total(GpuQuantity::kFree), (Total{6, 1000 + 2000 + 8000 + 1600 + 77}));
  // What remains: from the pool, managed, pitched.
  EXPECT_EQ(run.region().slots[0].used[0].load(), 4000 + 16000 + 5120);
  EXPECT_EQ(run.region().slots[0].peak[0].load(), 1000 + 2000 + 4000 + 8000 + 16000 + 5120 + 1600);
}

TEST(GpuCount, AllocationsOfSeveralThreadsAddUp) {
  const GpuTestRun run;
  const ProgramOutput ran = run.probe("many_blocks 3000");
  ASSERT_EQ(ran.status, 0) << ran.text;
  EXPECT_EQ(run.total(GpuQuantity::kAllocDevice), (Total{12000, 12000 * 256}));
  EXPECT_EQ(run.total(GpuQuantity::kFree), (Total{12000, 12000 * 256}));
  EXPECT_EQ(run.region().slots[0].used[0].load(), 0);
}

TEST(GpuCount, DevicesAreKnownByUuidAlsoSlicesOfOne) {
  const GpuTestRun run;
  EXPECT_EQ(run.probe("many_blocks 1", "FAKECUDA_MIG=1").status, 0);
  EXPECT_EQ(run.probe("many_blocks 1").status, 0);
  EXPECT_EQ(run.region().devices[0].uuid[0].load(), 0xB0B0B0B0B0B0B0B0);
  EXPECT_EQ(run.region().devices[1].uuid[0].load(), 0xA0A0A0A0A0A0A0A0);
  EXPECT_EQ(run.region().devices[2].key.load(), 0);
}

TEST(GpuCount, AGraphsLaunchCountsItsNodes) {
  const GpuTestRun run;
  const ProgramOutput ran = run.probe("graphs 10");
  ASSERT_EQ(ran.status, 0) << ran.text;
  EXPECT_EQ(ran.values.at("nodes"), 60);
  EXPECT_EQ(run.total(GpuQuantity::kGraph), (Total{10, 60}));
  EXPECT_EQ(run.total(GpuQuantity::kGraphKernel).calls, 50);
}

TEST(GpuCount, WhatAStreamCapturesIsCountedApart) {
  const GpuTestRun run;
  EXPECT_EQ(run.probe("capture").status, 0);
  EXPECT_EQ(run.total(GpuQuantity::kKernel).calls, 8);
  EXPECT_EQ(run.total(GpuQuantity::kCaptured).calls, 6);
  EXPECT_EQ(run.total(GpuQuantity::kGraph), (Total{4, 24}));
  EXPECT_EQ(run.total(GpuQuantity::kGraphKernel).calls, 24);
}

TEST(GpuCount, CollectivesByCommunicatorOperationAndType) {
  const GpuTestRun run;
  const ProgramOutput ran = run.probe("nccl");
  ASSERT_EQ(ran.status, 0) << ran.text;
  EXPECT_EQ(ran.values.at("calls"), 9);
  struct Row {
    unsigned operation, type, ranks;
    std::uint64_t calls, bytes;
    bool operator==(const Row&) const = default;
    bool operator<(const Row& other) const {
      return std::tie(operation, type, ranks) < std::tie(other.operation, other.type, other.ranks);
    }
  };
  std::vector<Row> rows;
  for (const wire::GpuCollective& row : run.region().collectives) {
    if (row.key.load() == 0) continue;
    rows.push_back({row.operation.load(), row.type.load(), row.ranks.load(), row.calls.load(),
                    row.bytes.load()});
  }
  std::sort(rows.begin(), rows.end());
  const auto operation = [](wire::GpuOperation of) { return static_cast<unsigned>(of); };
  const std::vector<Row> expected = {
      {operation(wire::GpuOperation::kAllReduce), 7, 8, 5, 20000},
      {operation(wire::GpuOperation::kAllReduce), 9, 8, 1, 20},
      {operation(wire::GpuOperation::kReduceScatter), 9, 8, 1, 1600},
      {operation(wire::GpuOperation::kAllGather), 2, 4, 1, 96},
      {operation(wire::GpuOperation::kAllGather), 9, 8, 1, 1600},
  };
  EXPECT_TRUE(rows == expected);
  EXPECT_EQ(run.total(GpuQuantity::kNcclGroup).calls, 1);
}

TEST(GpuCount, ARegionOfAnotherVersionIsNotTouched) {
  const GpuTestRun run;
  run.region().header.version = 99;
  const ProgramOutput ran = run.probe("threads 2 10");
  ASSERT_EQ(ran.status, 0) << ran.text;
  EXPECT_EQ(ran.values.at("cuLaunchKernel"), 20);
  EXPECT_EQ(run.region().header.next_slot.load(), 0);
}

TEST(GpuCount, ARegionThatIsTooShortIsNotTouched) {
  const GpuTestRun run;
  ASSERT_EQ(::truncate(run.path(), 4096), 0);
  const ProgramOutput ran = run.probe("threads 2 10");
  ASSERT_EQ(ran.status, 0) << ran.text;
  EXPECT_EQ(ran.values.at("cuLaunchKernel"), 20);
}

TEST(GpuCount, NothingIsPrintedUnlessAsked) {
  const GpuTestRun run;
  EXPECT_EQ(run.probe("at_exit").text, "");
  const std::string log = std::string(run.path()) + ".log";
  EXPECT_EQ(run.probe("at_exit", "ASSAY_GPU_LOG=" + log).text, "");
  const ProgramOutput logged = GpuTestRun::run_as("cat " + log);
  EXPECT_NE(logged.text.find("counting"), std::string::npos) << logged.text;
  ::unlink(log.c_str());
}

}  // namespace
}  // namespace assay::gpu
