// Memory limits hold for a run, whatever allocator it uses and however its processes end, and
// memory queries agree with them. Checked against the accounts of the fake driver and NVML.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "observe/shim/gpu/testing/limits.h"

namespace assay::gpu {
namespace {

using testing::GpuTestRun;
using testing::kOutOfMemory;
using testing::ProgramOutput;
using wire::GpuQuantity;
using Total = wire::GpuTotals::Total;
class GpuLimits : public testing::GpuLimitsTest {};

TEST_F(GpuLimits, EveryAllocatorIsRefusedBeyondTheLimitAsTheDriverWould) {
  limit(10'000);
  for (const char* what : {"alloc", "managed", "async", "fromnew", "create", "array", "array3d"}) {
    const std::string name = what;
    const ProgramOutput ran = memory("a=" + name + ":6000 b=" + name + ":6000 c=" + name +
                                     ":4000 d=" + name + ":1 free:0 e=" + name + ":6000");
    ASSERT_EQ(ran.status, 0) << ran.text;
    EXPECT_EQ(ran.values.at("a"), 0) << what;
    EXPECT_EQ(ran.values.at("b"), kOutOfMemory) << what;
    EXPECT_EQ(ran.values.at("c"), 0) << what;
    EXPECT_EQ(ran.values.at("d"), kOutOfMemory) << what;
    EXPECT_EQ(ran.values.at("e"), 0) << what;
  }
  EXPECT_EQ(run_.total(GpuQuantity::kRefused), (Total{14, 7 * 6001}));
}

TEST_F(GpuLimits, PitchedAndMipmappedMemoryCountsAsItIs) {
  limit(10'000);
  const ProgramOutput ran =
      memory("a=pitch:100:10 b=pitch:600:5 c=pitch:600:4 d=mipmap:512:10 e=mipmap:100:1");
  EXPECT_EQ(ran.values.at("a"), 0) << ran.text;  // 512 × 10
  EXPECT_EQ(ran.values.at("b"), kOutOfMemory);   // 1024 × 5
  EXPECT_EQ(ran.values.at("c"), 0);              // 1024 × 4
  EXPECT_EQ(ran.values.at("d"), kOutOfMemory);   // 512 + 256 + … + 1, beyond the last 784
  EXPECT_EQ(ran.values.at("e"), 0);
  EXPECT_EQ(run_.region().slots[0].peak[0].load(), 5120 + 4096 + 100);
}

TEST_F(GpuLimits, SizesBeyondAllReasonAreRefusedWithAndWithoutALimit) {
  const std::string words =
      "a=alloc:18446744073709551615 b=pitch:18446744073709551615:9 c=pitch:4294967296:8589934592 "
      "d=array:18446744073709551615 e=mipmap:18446744073709551615:40 f=alloc:0 g=alloc:100";
  const ProgramOutput bare =
      GpuTestRun::run_as("LD_LIBRARY_PATH=" ASSAY_FAKECUDA " " ASSAY_GPU_PROBE " memory " + words);
  for (const std::uint64_t bytes : {0UL, 10'000UL}) {
    limit(bytes);
    const ProgramOutput ran = memory(words);
    ASSERT_EQ(ran.status, 0) << ran.text;
    for (const char* word : {"a", "d", "e"}) EXPECT_EQ(ran.values.at(word), kOutOfMemory) << word;
    EXPECT_EQ(ran.values.at("f"), bare.values.at("f"));
    EXPECT_EQ(ran.values.at("g"), 0);
    if (bytes == 0) {
      EXPECT_EQ(ran.text, bare.text);
    }
    EXPECT_EQ(used(), 100);
  }
}

TEST_F(GpuLimits, WhatTheDriverRefusesIsGivenBack) {
  limit(1'000'000);
  const ProgramOutput ran =
      memory("a=alloc:600 b=alloc:600 c=async:600 d=create:600 e=array:600 free:0 f=alloc:900",
             "FAKECUDA_MEMORY=1000");
  for (const char* word : {"b", "c", "d", "e"})
    EXPECT_EQ(ran.values.at(word), kOutOfMemory) << word;
  EXPECT_EQ(ran.values.at("f"), 0) << ran.text;
  EXPECT_EQ(used(), 900);
}

TEST_F(GpuLimits, ProcessesOfARunShareTheLimit) {
  limit(1000);
  const ProgramOutput ran =
      memory("a=alloc:600 shell:OTHER", again("b=alloc:500 c=alloc:400 d=alloc:1 i=info") +
                                            " FAKECUDA_STATE=" + run_.file("state"));
  EXPECT_EQ(ran.values.at("a"), 0) << ran.text;
  EXPECT_EQ(ran.values.at("b"), kOutOfMemory);
  EXPECT_EQ(ran.values.at("c"), 0);
  EXPECT_EQ(ran.values.at("d"), kOutOfMemory);
  EXPECT_EQ(ran.values.at("i.free"), 0);  // in a second process
  EXPECT_EQ(ran.values.at("i.total"), 1000);
}

TEST_F(GpuLimits, WithoutALimitEverythingIsAccountedForAndNothingRefused) {
  const ProgramOutput ran = memory("a=alloc:600 b=async:400 t=total:0 i=info n=nvml:0",
                                   "FAKECUDA_MEMORY=5000 FAKECUDA_STATE=" + run_.file("state"));
  EXPECT_EQ(used(), 1000);
  EXPECT_EQ(ran.values.at("t.total"), 5000) << ran.text;
  EXPECT_EQ(ran.values.at("i.total"), 5000);
  EXPECT_EQ(ran.values.at("i.free"), 4000);
  EXPECT_EQ(ran.values.at("n.total"), 5000);
  EXPECT_EQ(ran.values.at("n.used"), 1000);
  EXPECT_EQ(run_.region().devices[0].total.load(), 5000);
}

TEST_F(GpuLimits, QueriesReportTheLimit) {
  limit(3000);
  const ProgramOutput ran = memory(
      "x=nvml:0 alloc:500 t=total:0 i=info n=nvml:0 m=nvml2:0 z=infonull", "FAKECUDA_MEMORY=5000");
  EXPECT_EQ(ran.values.at("x.total"), 3000) << ran.text;  // before anything was used
  EXPECT_EQ(ran.values.at("x.used"), 0);
  EXPECT_EQ(ran.values.at("t.total"), 3000);
  EXPECT_EQ(ran.values.at("i.total"), 3000);
  EXPECT_EQ(ran.values.at("i.free"), 2500);
  EXPECT_EQ(ran.values.at("n.total"), 3000);
  EXPECT_EQ(ran.values.at("n.used"), 500);
  EXPECT_EQ(ran.values.at("n.free"), 2500);
  EXPECT_EQ(ran.values.at("m.total"), 3000);
  EXPECT_EQ(ran.values.at("m.used"), 500);
  EXPECT_EQ(ran.values.at("m.version"), 40U | (2U << 24U));
  EXPECT_EQ(ran.values.at("z"), 1);  // the driver's invalid value, and no crash
}

TEST_F(GpuLimits, FreeMemoryIsBoundedByTheCardsFreeMemory) {
  limit(3000);
  const std::string state = run_.file("state");
  const std::string filled = "LD_PRELOAD= FAKECUDA_MEMORY=5000 FAKECUDA_STATE=" + state;
  // 4500 are used by a process without limits.
  const ProgramOutput ran =
      run_.probe("memory alloc:4500 shell:OTHER",
                 filled + " OTHER='LD_PRELOAD=" ASSAY_GPU_LIBRARY " " ASSAY_GPU_PROBE
                          " memory i=info n=nvml:0 a=alloc:600 b=alloc:400'");
  EXPECT_EQ(ran.values.at("i.total"), 3000) << ran.text;
  EXPECT_EQ(ran.values.at("i.free"), 500);
  EXPECT_EQ(ran.values.at("n.free"), 500);
  EXPECT_EQ(ran.values.at("n.used"), 0);
  EXPECT_EQ(ran.values.at("a"), kOutOfMemory);
  EXPECT_EQ(ran.values.at("b"), 0);
}

TEST_F(GpuLimits, ALimitAboveTheCardReportsTheCard) {
  limit(9000);
  const ProgramOutput ran = memory("t=total:0 i=info n=nvml:0", "FAKECUDA_MEMORY=5000");
  EXPECT_EQ(ran.values.at("t.total"), 5000) << ran.text;
  EXPECT_EQ(ran.values.at("i.total"), 5000);
  EXPECT_EQ(ran.values.at("n.total"), 5000);
}

TEST_F(GpuLimits, DevicesHaveLimitsOfTheirOwnByUuidInWhateverOrder) {
  // The card whose UUID ends in 1.
  unsigned char uuid[16];
  std::fill(std::begin(uuid), std::end(uuid), 0xA0);
  uuid[15] = 1;
  std::uint64_t words[2];
  std::memcpy(words, uuid, sizeof words);
  const std::size_t device_index = wire::claim_device(run_.region(), words[0], words[1]);
  run_.region().devices[device_index].limits.bytes = 1000;
  limit(2000);
  for (const auto& [visible, first, second] :
       {std::tuple{"0,1", 2000, 1000}, std::tuple{"1,0", 1000, 2000},
        std::tuple{"GPU-a0a0a0a0-a0a0-a0a0-a0a0-a0a0a0a0a001", 1000, 0}}) {
    const ProgramOutput ran =
        memory("device:0 a=total:0 b=alloc:" + std::to_string(first) +
                   " c=alloc:1 device:1 d=total:1 e=alloc:" + std::to_string(second) + " m=nvml:1",
               std::string("FAKECUDA_DEVICES=2 CUDA_VISIBLE_DEVICES=") + visible);
    EXPECT_EQ(ran.values.at("a.total"), first) << visible << ran.text;
    EXPECT_EQ(ran.values.at("b"), 0);
    EXPECT_EQ(ran.values.at("c"), kOutOfMemory);
    EXPECT_EQ(ran.values.at("m.total"),
              1000);  // NVML's second card, however the program numbers it
    if (second == 0) continue;
    EXPECT_EQ(ran.values.at("d.total"), second);
    EXPECT_EQ(ran.values.at("e"), 0);
  }
}

TEST_F(GpuLimits, SlicesOfACardAreDevices) {
  limit(2000);
  const ProgramOutput ran = memory("t=total:0 a=alloc:1500 n=nvml:0", "FAKECUDA_MIG=1");
  EXPECT_EQ(ran.values.at("t.total"), 2000) << ran.text;
  EXPECT_EQ(ran.values.at("n.total"), 2000);
  EXPECT_EQ(ran.values.at("n.used"), 1500);  // found by its name "MIG-…"
}

TEST_F(GpuLimits, CreateCountsForTheDeviceItNames) {
  const ProgramOutput ran = memory("create:300:1", "FAKECUDA_DEVICES=2");
  ASSERT_EQ(ran.status, 0) << ran.text;
  EXPECT_EQ(run_.region().devices[0].uuid[1].load() >> 56U, 1);  // the only one that was used
  EXPECT_EQ(used(), 300);
}

TEST_F(GpuLimits, ANewLimitHoldsForARunningRunAndTakesNothingAway) {
  limit(1000);
  const ProgramOutput ran = memory_with_new_limit(
      "a=alloc:950 shell:OTHER t=total:0 i=info b=alloc:1 c=free:0 d=alloc:901 e=alloc:900", 900);
  EXPECT_EQ(ran.values.at("a"), 0) << ran.text;
  EXPECT_EQ(ran.values.at("t.total"), 900);
  EXPECT_EQ(ran.values.at("i.free"), 0);  // not negative
  EXPECT_EQ(ran.values.at("b"), kOutOfMemory);
  EXPECT_EQ(ran.values.at("c"), 0);
  EXPECT_EQ(ran.values.at("d"), kOutOfMemory);
  EXPECT_EQ(ran.values.at("e"), 0);
}

TEST_F(GpuLimits, UnknownPointersAreTheDriversToFree) {
  limit(1000);
  const ProgramOutput ran =
      memory("a=alloc:1000 b=freeraw:12345 c=freeraw:0 d=alloc:1 e=free:0 f=free:0 g=alloc:1000");
  EXPECT_EQ(ran.values.at("b"), 1) << ran.text;
  EXPECT_EQ(ran.values.at("c"), 0);
  EXPECT_EQ(ran.values.at("d"), kOutOfMemory);
  EXPECT_EQ(ran.values.at("e"), 0);
  EXPECT_EQ(ran.values.at("f"), 1);  // twice
  EXPECT_EQ(ran.values.at("g"), 0);
  EXPECT_EQ(used(), 1000);
}

TEST_F(GpuLimits, HandlesLiveAsLongAsTheyAreMappedOrHeld) {
  limit(1000);
  const ProgramOutput ran =
      memory("create:1000 map:0 free:0 a=alloc:1 retain:0 unmap:0 b=alloc:1 free:0 c=alloc:1000");
  EXPECT_EQ(ran.values.at("a"), kOutOfMemory) << ran.text;  // released, and still mapped
  EXPECT_EQ(ran.values.at("b"), kOutOfMemory);              // unmapped, and held again
  EXPECT_EQ(ran.values.at("c"), 0);
  EXPECT_EQ(used(), 1000);
}

TEST_F(GpuLimits, AContextTakesItsMemoryWithIt) {
  limit(1000);
  const ProgramOutput ran = memory(
      "primary alloc:300 array:50 reset a=alloc:1000 reset "
      "primary primary alloc:400 release b=alloc:700 release primary c=alloc:1000 reset "
      "ctx alloc:900 destroy ctx d=alloc:1000 destroy");
  EXPECT_EQ(ran.values.at("a"), 0) << ran.text;
  EXPECT_EQ(ran.values.at("b"), kOutOfMemory);  // released once, retained twice
  EXPECT_EQ(ran.values.at("c"), 0);
  EXPECT_EQ(ran.values.at("d"), 0);
  EXPECT_EQ(used(), 0);
}

// Memory that no call allocates: contexts and modules.
TEST_F(GpuLimits, ContextsAndModulesAreReconciledWithNvml) {
  limit(1000);
  const std::string cost =
      "FAKECUDA_CONTEXT=300 FAKECUDA_MODULE=50 FAKECUDA_STATE=" + run_.file("state");
  const ProgramOutput ran = memory(
      "primary a=alloc:800 b=alloc:600 module module sleep:1100 c=alloc:50 i=info n=nvml:0", cost);
  EXPECT_EQ(ran.values.at("a"), kOutOfMemory) << ran.text;
  EXPECT_EQ(ran.values.at("b"), 0);
  EXPECT_EQ(ran.values.at("c"), kOutOfMemory);
  EXPECT_EQ(ran.values.at("i.free"), 0);
  EXPECT_EQ(ran.values.at("n.used"), 1000);
  EXPECT_EQ(run_.region().slots[0].overhead[0].load(), 400);
  EXPECT_EQ(used(), 1000);
}

// While other threads allocate it cannot be determined; then it is queried again soon.
TEST_F(GpuLimits, AnInterruptedQueryIsRepeated) {
  limit(1000);
  const ProgramOutput ran = memory("primary beside:300 sleep:1500 a=alloc:701 b=alloc:700",
                                   "FAKECUDA_CONTEXT=300 FAKECUDA_NVML_MS=40");
  EXPECT_EQ(ran.values.at("a"), kOutOfMemory) << ran.text;
  EXPECT_EQ(ran.values.at("b"), 0);
}

TEST_F(GpuLimits, InANamespaceOfPidsTheOnlyProcessIsMeantAndOfSeveralNone) {
  limit(1000);
  const std::string state = run_.file("state");
  const std::string log = run_.file("log");
  const std::string settings =
      "FAKECUDA_CONTEXT=300 FAKECUDA_PID_SHIFT=500000 FAKECUDA_STATE=" + state +
      " ASSAY_GPU_LOG=" + log + " ";
  const std::string apart = "unshare --pid --fork --mount-proc ";
  const ProgramOutput ran =
      run_.run(apart + ASSAY_GPU_PROBE " memory primary a=alloc:701 b=alloc:700 shell:OTHER",
               settings + again("primary c=alloc:1"));
  const ProgramOutput logged = GpuTestRun::run_as("cat " + log);
  if (ran.values.count("a") == 0) GTEST_SKIP() << ran.text;
  EXPECT_EQ(ran.values.at("a"), kOutOfMemory) << ran.text;
  EXPECT_EQ(ran.values.at("b"), 0);
  EXPECT_EQ(ran.values.at("c"), kOutOfMemory);  // the run's limit is reached
  EXPECT_EQ(run_.region().slots[0].overhead[0].load(), 300);
  EXPECT_EQ(run_.region().slots[1].overhead[0].load(), 0);
  EXPECT_NE(logged.text.find("NVML does not report"), std::string::npos) << logged.text;
}

TEST_F(GpuLimits, WithoutNvmlLimitsHoldAllTheSame) {
  limit(1000);
  const std::string folder = std::string(run_.path()) + ".only";
  const ProgramOutput ran =
      memory("primary a=alloc:1001 b=alloc:1000 n=nvml:0",
             "FAKECUDA_CONTEXT=300 LD_LIBRARY_PATH=" ASSAY_FAKECUDA "/versioned");
  EXPECT_EQ(ran.values.at("a"), kOutOfMemory) << ran.text;
  EXPECT_EQ(ran.values.at("b"), 0);
}

TEST_F(GpuLimits, NvmlIsNotLoadedWhereThereIsNoLimit) {
  const ProgramOutput ran =
      run_.run("sh -c 'exec " ASSAY_GPU_PROBE " memory primary alloc:100 shell:OTHER'",
               "OTHER='grep -c nvidia-ml /proc/$PPID/maps'");
  EXPECT_EQ(ran.text, "0\n");
  limit(1000);
  const ProgramOutput limited =
      run_.run(ASSAY_GPU_PROBE " memory primary alloc:100 shell:OTHER",
               "OTHER='grep -q nvidia-ml /proc/$PPID/maps && echo there 1'");
  EXPECT_EQ(limited.values.count("there"), 1) << limited.text;
}

TEST_F(GpuLimits, AChildHoldsNothingOfItsParents) {
  limit(1'000'000);
  const ProgramOutput ran =
      memory("alloc:600000 fork a=alloc:400000 b=alloc:1 c=free:0 d=alloc:1 free:1 e=alloc:400000");
  ASSERT_EQ(ran.status, 0) << ran.text;
  EXPECT_EQ(ran.values.at("a"), 0);
  EXPECT_EQ(ran.values.at("b"), kOutOfMemory);
  EXPECT_EQ(ran.values.at("c"), 0);             // left to the driver,
  EXPECT_EQ(ran.values.at("d"), kOutOfMemory);  // and its parent still holds it
  EXPECT_EQ(ran.values.at("e"), 0);
  EXPECT_EQ(run_.region().header.next_slot.load(), 2);
}

TEST_F(GpuLimits, AProgramHoldsNothingAfterExec) {
  limit(1000);
  const ProgramOutput ran = memory("alloc:900 exec:OTHER", again("a=alloc:1000"));
  ASSERT_EQ(ran.status, 0) << ran.text;
  EXPECT_EQ(ran.values.at("a"), 0) << ran.text;
  EXPECT_EQ(used(), 1000);
}

TEST_F(GpuLimits, MemoryOfExitedProcessesIsReclaimedOnDemand) {
  limit(1000);
  for (int i = 0; i < 3; ++i) (void)memory("alloc:300 kill");
  EXPECT_EQ(used(), 900);
  const ProgramOutput ran = memory("a=alloc:1000 b=alloc:1");
  EXPECT_EQ(ran.values.at("a"), 0) << ran.text;
  EXPECT_EQ(ran.values.at("b"), kOutOfMemory);
  EXPECT_EQ(used(), 1000);
}

TEST_F(GpuLimits, QueriesExcludeExitedProcesses) {
  limit(1000);
  (void)memory("alloc:300 exit");
  (void)memory("alloc:400 kill");
  const ProgramOutput driver = memory("i=info alloc:100 kill");
  EXPECT_EQ(driver.values.at("i.free"), 1000) << driver.text;
  const ProgramOutput nvml = memory("n=nvml:0 m=nvml2:0");
  EXPECT_EQ(nvml.values.at("n.used"), 0) << nvml.text;
  EXPECT_EQ(nvml.values.at("n.free"), 1000);
  EXPECT_EQ(nvml.values.at("m.used"), 0);
  EXPECT_EQ(used(), 0);
}

// Children that are not waited for remain as zombies, which hold no memory.
TEST_F(GpuLimits, ZombiesHoldNothing) {
  limit(1000);
  const ProgramOutput ran = memory("a=bury:OTHER b=alloc:1000", again("alloc:900 kill"));
  EXPECT_EQ(ran.values.at("a"), 0) << ran.text;
  EXPECT_EQ(ran.values.at("b"), 0) << ran.text;
}

// Killed while they allocate at the limit, next to processes that are not.
TEST_F(GpuLimits, ProcessesKilledAtAnyMomentLoseNothing) {
  limit(20'000);
  std::minstd_rand random(7);
  std::thread beside([&] {
    const ProgramOutput ran = memory("churn:15000:1500", "FAKECUDA_MEMORY=1000000000000");
    EXPECT_EQ(ran.status, 0) << ran.text;
  });
  for (int round = 0; round < 25; ++round) {
    (void)run_.run("timeout -s KILL 0.0" + std::to_string(10 + random() % 30) +
                   " " ASSAY_GPU_PROBE " memory churn:100000000:1500");
  }
  beside.join();
  // Not used(), which compares the sum: the last one killed may have changed the device's count and
  // not yet its own, or still be exiting. Whoever comes next settles that.
  EXPECT_LE(run_.region().devices[0].used.load(), 20'000);
  ProgramOutput last;
  for (int round = 0; round < 50 && (round == 0 || last.values["a"] != 0); ++round) {
    if (round > 0) ::usleep(20'000);
    last = memory("a=alloc:20000 b=alloc:1 free:0");
  }
  EXPECT_EQ(last.values.at("a"), 0) << last.text;
  EXPECT_EQ(last.values.at("b"), kOutOfMemory);
  EXPECT_EQ(used(), 0);
  EXPECT_GT(run_.total(GpuQuantity::kRefused).calls, 100);
}

TEST_F(GpuLimits, ThreadsAtTheLimitAddUpToNothing) {
  limit(9000);
  const ProgramOutput ran = memory("churn:20000:1500 a=alloc:9000 b=alloc:1");
  EXPECT_EQ(ran.values.at("a"), 0) << ran.text;
  EXPECT_EQ(ran.values.at("b"), kOutOfMemory);
  EXPECT_EQ(used(), 9000);
}

TEST_F(GpuLimits, ACorruptRegionDoesNoHarm) {
  limit(1000);
  for (wire::GpuSlot& slot : run_.region().slots) {
    slot.entry = ~0ULL;
    slot.entry_device = 77;
    slot.confirmed = ~0ULL;
  }
  run_.region().devices[0].last = ~0ULL;
  run_.region().header.next_slot = 5;
  const ProgramOutput ran = memory("a=alloc:1000 b=alloc:1 free:0");
  ASSERT_EQ(ran.status, 0) << ran.text;
  EXPECT_EQ(ran.values.at("a"), 0);
  EXPECT_EQ(ran.values.at("b"), kOutOfMemory);
  EXPECT_EQ(used(), 0);
}

// A region of another user, or one that was removed.
TEST_F(GpuLimits, ARegionThatCannotBeOpenedIsLogged) {
  limit(1000);
  const std::string log = run_.file("log");
  const ProgramOutput ran = memory("a=alloc:2000", "ASSAY_GPU_REGION=" + std::string(run_.path()) +
                                                       ".gone ASSAY_GPU_LOG=" + log);
  const ProgramOutput logged = GpuTestRun::run_as("cat " + log);
  ASSERT_EQ(ran.status, 0) << ran.text;
  EXPECT_EQ(ran.values.at("a"), 0);
  EXPECT_NE(logged.text.find("limits are not enforced in this process"), std::string::npos)
      << logged.text;
  EXPECT_EQ(used(), 0);
}

TEST_F(GpuLimits, WithoutASlotMemoryIsNotLimitedWhichIsLogged) {
  limit(1000);
  const std::string log = run_.file("log");
  const int file = ::open(run_.path(), O_RDWR | O_CLOEXEC);
  struct flock all {};
  all.l_type = F_WRLCK;
  ASSERT_EQ(::fcntl(file, F_SETLK, &all), 0);  // every slot has an owner
  const ProgramOutput ran = memory("a=alloc:600 b=alloc:600 free:0", "ASSAY_GPU_LOG=" + log);
  ::close(file);
  const ProgramOutput logged = GpuTestRun::run_as("cat " + log);
  ASSERT_EQ(ran.status, 0) << ran.text;
  EXPECT_EQ(ran.values.at("a"), 0);
  EXPECT_EQ(ran.values.at("b"), 0);
  EXPECT_NE(logged.text.find("is not limited"), std::string::npos) << logged.text;
}

}  // namespace
}  // namespace assay::gpu
