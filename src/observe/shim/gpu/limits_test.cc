// Memory limits hold for a job, whatever it allocates with and however its processes end; and what
// it is told agrees with them. Against the fake driver's and NVML's own books.
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <random>
#include <thread>
#include <vector>

#include "observe/shim/gpu/testing/run.h"

namespace assay::gpu {
namespace {

using testing::Job;
using testing::Ran;
using wire::GpuQuantity;
using Total = wire::GpuTotals::Total;

constexpr int kOutOfMemory = 2;

class GpuLimits : public ::testing::Test {
 protected:
  void limit(std::uint64_t bytes) { job_.region().header.limits.bytes = bytes; }
  // What the job has of its first device, which must be what its processes have of it.
  std::uint64_t used(std::size_t line = 0) {
    std::uint64_t sum = 0;
    for (const wire::GpuSlot& slot : job_.region().slots) sum += slot.used[line].load();
    EXPECT_EQ(job_.region().devices[line].used.load(), sum);
    return sum;
  }
  [[nodiscard]] Ran memory(const std::string& words, const std::string& settings = "") const {
    return job_.probe("memory " + words, settings);
  }
  [[nodiscard]] std::string again(const std::string& words) const {
    return "OTHER='" ASSAY_GPU_PROBE " memory " + words + "'";
  }
  Job job_;
};

TEST_F(GpuLimits, EveryAllocatorIsRefusedBeyondTheLimitAsTheDriverWould) {
  limit(10'000);
  for (const char* what : {"alloc", "managed", "async", "fromnew", "create", "array", "array3d"}) {
    const std::string name = what;
    const Ran ran = memory("a=" + name + ":6000 b=" + name + ":6000 c=" + name + ":4000 d=" + name +
                           ":1 free:0 e=" + name + ":6000");
    ASSERT_EQ(ran.status, 0) << ran.text;
    EXPECT_EQ(ran.told.at("a"), 0) << what;
    EXPECT_EQ(ran.told.at("b"), kOutOfMemory) << what;
    EXPECT_EQ(ran.told.at("c"), 0) << what;
    EXPECT_EQ(ran.told.at("d"), kOutOfMemory) << what;
    EXPECT_EQ(ran.told.at("e"), 0) << what;
  }
  EXPECT_EQ(job_.total(GpuQuantity::kRefused), (Total{14, 7 * 6001}));
}

TEST_F(GpuLimits, PitchedAndMipmappedMemoryCountsAsItIs) {
  limit(10'000);
  const Ran ran =
      memory("a=pitch:100:10 b=pitch:600:5 c=pitch:600:4 d=mipmap:512:10 e=mipmap:100:1");
  EXPECT_EQ(ran.told.at("a"), 0) << ran.text;  // 512 × 10
  EXPECT_EQ(ran.told.at("b"), kOutOfMemory);   // 1024 × 5
  EXPECT_EQ(ran.told.at("c"), 0);              // 1024 × 4
  EXPECT_EQ(ran.told.at("d"), kOutOfMemory);   // 512 + 256 + … + 1, beyond the last 784
  EXPECT_EQ(ran.told.at("e"), 0);
  EXPECT_EQ(job_.region().slots[0].peak[0].load(), 5120 + 4096 + 100);
}

TEST_F(GpuLimits, ArraysCountByTheirFormat) {
  limit(10'000);
  // 100 × 40 elements, of 12 bits (NV12), of 4 (BC1), of four normalised 16-bit channels.
  const Ran ran = memory(
      "array3d:100:40:176:3:0 a=alloc:4001 b=alloc:4000 free:2 free:0 "
      "array3d:100:40:145:4:0 c=alloc:8001 d=alloc:8000 free:5 free:3 "
      "e=array3d:100:40:197:4:0 f=array3d:100:12:197:4:0");
  for (const char* word : {"a", "c", "e"}) EXPECT_EQ(ran.told.at(word), kOutOfMemory) << ran.text;
  for (const char* word : {"b", "d", "f"}) EXPECT_EQ(ran.told.at(word), 0) << word << ran.text;
  EXPECT_EQ(used(), 9600);
}

TEST_F(GpuLimits, ArraysWithoutMemoryOfTheirOwnCountNothing) {
  limit(10'000);
  const Ran ran = memory(
      "a=array3d:50000:1:1:1:64 b=array3d:50000:1:1:1:128 c=mipmap:50000:4:64 d=mipmap:50000:4:128 "
      "e=alloc:10000 f=array3d:1:1:1:1:0");
  for (const char* word : {"a", "b", "c", "d", "e"}) {
    EXPECT_EQ(ran.told.at(word), 0) << word << ran.text;
  }
  EXPECT_EQ(ran.told.at("f"), kOutOfMemory);
  EXPECT_EQ(used(), 10'000);
}

TEST_F(GpuLimits, SizesBeyondAllReasonAreRefusedWithAndWithoutALimit) {
  const std::string words =
      "a=alloc:18446744073709551615 b=pitch:18446744073709551615:9 c=pitch:4294967296:8589934592 "
      "d=array:18446744073709551615 e=mipmap:18446744073709551615:40 f=alloc:0 g=alloc:100";
  const Ran bare =
      Job::run_as("LD_LIBRARY_PATH=" ASSAY_FAKECUDA " " ASSAY_GPU_PROBE " memory " + words);
  for (const std::uint64_t bytes : {0UL, 10'000UL}) {
    limit(bytes);
    const Ran ran = memory(words);
    ASSERT_EQ(ran.status, 0) << ran.text;
    for (const char* word : {"a", "d", "e"}) EXPECT_EQ(ran.told.at(word), kOutOfMemory) << word;
    EXPECT_EQ(ran.told.at("f"), bare.told.at("f"));
    EXPECT_EQ(ran.told.at("g"), 0);
    if (bytes == 0) {
      EXPECT_EQ(ran.text, bare.text);
    }
    EXPECT_EQ(used(), 100);
  }
}

TEST_F(GpuLimits, WhatTheDriverRefusesIsGivenBack) {
  limit(1'000'000);
  const Ran ran =
      memory("a=alloc:600 b=alloc:600 c=async:600 d=create:600 e=array:600 free:0 f=alloc:900",
             "FAKECUDA_MEMORY=1000");
  for (const char* word : {"b", "c", "d", "e"}) EXPECT_EQ(ran.told.at(word), kOutOfMemory) << word;
  EXPECT_EQ(ran.told.at("f"), 0) << ran.text;
  EXPECT_EQ(used(), 900);
}

TEST_F(GpuLimits, ProcessesOfAJobHaveItTogether) {
  limit(1000);
  const Ran ran =
      memory("a=alloc:600 shell:OTHER", again("b=alloc:500 c=alloc:400 d=alloc:1 i=info") +
                                            " FAKECUDA_STATE=" + job_.path() + ".state");
  ::unlink((std::string(job_.path()) + ".state.memory").c_str());
  EXPECT_EQ(ran.told.at("a"), 0) << ran.text;
  EXPECT_EQ(ran.told.at("b"), kOutOfMemory);
  EXPECT_EQ(ran.told.at("c"), 0);
  EXPECT_EQ(ran.told.at("d"), kOutOfMemory);
  EXPECT_EQ(ran.told.at("i.free"), 0);  // not all of it, in a second process
  EXPECT_EQ(ran.told.at("i.total"), 1000);
}

TEST_F(GpuLimits, WithoutALimitEverythingIsAccountedForAndNothingRefused) {
  const Ran ran = memory("a=alloc:600 b=async:400 t=total:0 i=info n=nvml:0",
                         "FAKECUDA_MEMORY=5000 FAKECUDA_STATE=" + std::string(job_.path()) + ".s");
  ::unlink((std::string(job_.path()) + ".s.memory").c_str());
  EXPECT_EQ(used(), 1000);
  EXPECT_EQ(ran.told.at("t.total"), 5000) << ran.text;
  EXPECT_EQ(ran.told.at("i.total"), 5000);
  EXPECT_EQ(ran.told.at("i.free"), 4000);
  EXPECT_EQ(ran.told.at("n.total"), 5000);
  EXPECT_EQ(ran.told.at("n.used"), 1000);
  EXPECT_EQ(job_.region().devices[0].total.load(), 5000);
}

TEST_F(GpuLimits, WhatAProgramIsToldIsItsLimit) {
  limit(3000);
  const Ran ran = memory("x=nvml:0 alloc:500 t=total:0 i=info n=nvml:0 m=nvml2:0 z=infonull",
                         "FAKECUDA_MEMORY=5000");
  EXPECT_EQ(ran.told.at("x.total"), 3000) << ran.text;  // before anything was used
  EXPECT_EQ(ran.told.at("x.used"), 0);
  EXPECT_EQ(ran.told.at("t.total"), 3000);
  EXPECT_EQ(ran.told.at("i.total"), 3000);
  EXPECT_EQ(ran.told.at("i.free"), 2500);
  EXPECT_EQ(ran.told.at("n.total"), 3000);
  EXPECT_EQ(ran.told.at("n.used"), 500);
  EXPECT_EQ(ran.told.at("n.free"), 2500);
  EXPECT_EQ(ran.told.at("m.total"), 3000);
  EXPECT_EQ(ran.told.at("m.used"), 500);
  EXPECT_EQ(ran.told.at("m.version"), 40U | (2U << 24U));
  EXPECT_EQ(ran.told.at("z"), 1);  // the driver's invalid value, and no crash
}

TEST_F(GpuLimits, ACardThatOthersHaveFilledHasNoMoreThanItHas) {
  limit(3000);
  const std::string state = std::string(job_.path()) + ".state";
  const std::string filled = "LD_PRELOAD= FAKECUDA_MEMORY=5000 FAKECUDA_STATE=" + state;
  // 4500 are somebody else's, whom nobody limits.
  const Ran ran = job_.probe("memory alloc:4500 shell:OTHER",
                             filled + " OTHER='LD_PRELOAD=" ASSAY_GPU_LIBRARY " " ASSAY_GPU_PROBE
                                      " memory i=info n=nvml:0 a=alloc:600 b=alloc:400'");
  ::unlink((state + ".memory").c_str());
  EXPECT_EQ(ran.told.at("i.total"), 3000) << ran.text;
  EXPECT_EQ(ran.told.at("i.free"), 500);
  EXPECT_EQ(ran.told.at("n.free"), 500);
  EXPECT_EQ(ran.told.at("n.used"), 0);
  EXPECT_EQ(ran.told.at("a"), kOutOfMemory);
  EXPECT_EQ(ran.told.at("b"), 0);
}

TEST_F(GpuLimits, ALimitAboveTheCardTellsTheCard) {
  limit(9000);
  const Ran ran = memory("t=total:0 i=info n=nvml:0", "FAKECUDA_MEMORY=5000");
  EXPECT_EQ(ran.told.at("t.total"), 5000) << ran.text;
  EXPECT_EQ(ran.told.at("i.total"), 5000);
  EXPECT_EQ(ran.told.at("n.total"), 5000);
}

TEST_F(GpuLimits, DevicesHaveLimitsOfTheirOwnByUuidInWhateverOrder) {
  // The card whose UUID ends in 1.
  unsigned char uuid[16];
  std::fill(std::begin(uuid), std::end(uuid), 0xA0);
  uuid[15] = 1;
  std::uint64_t words[2];
  std::memcpy(words, uuid, sizeof words);
  const std::size_t line = wire::claim_device(job_.region(), words[0], words[1]);
  job_.region().devices[line].limits.bytes = 1000;
  limit(2000);
  for (const auto& [visible, first, second] :
       {std::tuple{"0,1", 2000, 1000}, std::tuple{"1,0", 1000, 2000},
        std::tuple{"GPU-a0a0a0a0-a0a0-a0a0-a0a0-a0a0a0a0a001", 1000, 0}}) {
    const Ran ran =
        memory("device:0 a=total:0 b=alloc:" + std::to_string(first) +
                   " c=alloc:1 device:1 d=total:1 e=alloc:" + std::to_string(second) + " m=nvml:1",
               std::string("FAKECUDA_DEVICES=2 CUDA_VISIBLE_DEVICES=") + visible);
    EXPECT_EQ(ran.told.at("a.total"), first) << visible << ran.text;
    EXPECT_EQ(ran.told.at("b"), 0);
    EXPECT_EQ(ran.told.at("c"), kOutOfMemory);
    EXPECT_EQ(ran.told.at("m.total"), 1000);  // NVML's second card, however the program numbers it
    if (second == 0) continue;
    EXPECT_EQ(ran.told.at("d.total"), second);
    EXPECT_EQ(ran.told.at("e"), 0);
  }
}

TEST_F(GpuLimits, SlicesOfACardAreDevices) {
  limit(2000);
  const Ran ran = memory("t=total:0 a=alloc:1500 n=nvml:0", "FAKECUDA_MIG=1");
  EXPECT_EQ(ran.told.at("t.total"), 2000) << ran.text;
  EXPECT_EQ(ran.told.at("n.total"), 2000);
  EXPECT_EQ(ran.told.at("n.used"), 1500);  // found by "MIG-…"
}

TEST_F(GpuLimits, CreateCountsForTheDeviceItNames) {
  const Ran ran = memory("create:300:1", "FAKECUDA_DEVICES=2");
  ASSERT_EQ(ran.status, 0) << ran.text;
  EXPECT_EQ(job_.region().devices[0].uuid[1].load() >> 56U, 1);  // the only one that was used
  EXPECT_EQ(used(), 300);
}

TEST_F(GpuLimits, ANewLimitHoldsForARunningJobAndTakesNothingAway) {
  limit(1000);
  const std::string file = std::string(job_.path()) + ".new";
  const std::uint64_t bytes = 900;
  std::ofstream(file, std::ios::binary).write(reinterpret_cast<const char*>(&bytes), sizeof bytes);
  constexpr std::size_t kAt = offsetof(wire::GpuHeader, limits);
  const Ran ran =
      memory("a=alloc:950 shell:OTHER t=total:0 i=info b=alloc:1 c=free:0 d=alloc:901 e=alloc:900",
             "OTHER='dd if=" + file + " of=" + job_.path() +
                 " bs=1 conv=notrunc seek=" + std::to_string(kAt) + " 2>/dev/null'");
  ::unlink(file.c_str());
  EXPECT_EQ(ran.told.at("a"), 0) << ran.text;
  EXPECT_EQ(ran.told.at("t.total"), 900);
  EXPECT_EQ(ran.told.at("i.free"), 0);  // not less than nothing
  EXPECT_EQ(ran.told.at("b"), kOutOfMemory);
  EXPECT_EQ(ran.told.at("c"), 0);
  EXPECT_EQ(ran.told.at("d"), kOutOfMemory);
  EXPECT_EQ(ran.told.at("e"), 0);
}

TEST_F(GpuLimits, UnknownPointersAreTheDriversToFree) {
  limit(1000);
  const Ran ran =
      memory("a=alloc:1000 b=freeraw:12345 c=freeraw:0 d=alloc:1 e=free:0 f=free:0 g=alloc:1000");
  EXPECT_EQ(ran.told.at("b"), 1) << ran.text;
  EXPECT_EQ(ran.told.at("c"), 0);
  EXPECT_EQ(ran.told.at("d"), kOutOfMemory);
  EXPECT_EQ(ran.told.at("e"), 0);
  EXPECT_EQ(ran.told.at("f"), 1);  // twice
  EXPECT_EQ(ran.told.at("g"), 0);
  EXPECT_EQ(used(), 1000);
}

TEST_F(GpuLimits, HandlesLiveAsLongAsTheyAreMappedOrHeld) {
  limit(1000);
  const Ran ran =
      memory("create:1000 map:0 free:0 a=alloc:1 retain:0 unmap:0 b=alloc:1 free:0 c=alloc:1000");
  EXPECT_EQ(ran.told.at("a"), kOutOfMemory) << ran.text;  // released, and still mapped
  EXPECT_EQ(ran.told.at("b"), kOutOfMemory);              // unmapped, and held again
  EXPECT_EQ(ran.told.at("c"), 0);
  EXPECT_EQ(used(), 1000);
}

TEST_F(GpuLimits, AContextTakesItsMemoryWithIt) {
  limit(1000);
  const Ran ran = memory(
      "primary alloc:300 array:50 reset a=alloc:1000 reset "
      "primary primary alloc:400 release b=alloc:700 release primary c=alloc:1000 reset "
      "ctx alloc:900 destroy ctx d=alloc:1000 destroy");
  EXPECT_EQ(ran.told.at("a"), 0) << ran.text;
  EXPECT_EQ(ran.told.at("b"), kOutOfMemory);  // released once, retained twice
  EXPECT_EQ(ran.told.at("c"), 0);
  EXPECT_EQ(ran.told.at("d"), 0);
  EXPECT_EQ(used(), 0);
}

// Pools are devices': what was allocated from them is there when the context is gone.
TEST_F(GpuLimits, AContextLeavesPoolsAlone) {
  limit(1000);
  const Ran ran = memory(
      "primary async:700 reset x=real a=alloc:301 b=alloc:300 free:0 c=alloc:700 y=real "
      "ctx async:0 destroy");
  EXPECT_EQ(ran.told.at("x.used"), 700) << ran.text;
  EXPECT_EQ(ran.told.at("a"), kOutOfMemory);
  EXPECT_EQ(ran.told.at("b"), 0);
  EXPECT_EQ(ran.told.at("c"), 0);
  EXPECT_EQ(ran.told.at("y.used"), 1000);
}

// What a pool keeps is charged, and taken from it before anybody is refused.
TEST_F(GpuLimits, WhatPoolsKeepIsNotHadTwice) {
  limit(2000);
  const Ran ran = memory(
      "keep async:1500 free:0 i=info a=async:1500 x=real free:1 b=alloc:1500 y=real "
      "c=async:600 d=async:500 z=real e=create:1");
  EXPECT_EQ(ran.told.at("i.free"), 500) << ran.text;
  EXPECT_EQ(ran.told.at("a"), 0);  // from what it keeps
  EXPECT_EQ(ran.told.at("x.used"), 1500);
  EXPECT_EQ(ran.told.at("b"), 0);
  EXPECT_EQ(ran.told.at("y.used"), 1500);
  EXPECT_EQ(ran.told.at("c"), kOutOfMemory);
  EXPECT_EQ(ran.told.at("d"), 0);
  EXPECT_EQ(ran.told.at("z.used"), 2000);
  EXPECT_EQ(ran.told.at("e"), kOutOfMemory);
  EXPECT_EQ(used(), 2000);
}

TEST_F(GpuLimits, WhatAPoolKeepsNoOtherProcessCanHave) {
  limit(2000);
  const std::string state = " FAKECUDA_STATE=" + std::string(job_.path()) + ".state";
  const Ran kept = memory("keep async:1500 free:0 sync shell:OTHER",
                          again("a=alloc:501 b=alloc:500 x=real") + state);
  EXPECT_EQ(kept.told.at("a"), kOutOfMemory) << kept.text;
  EXPECT_EQ(kept.told.at("b"), 0);
  EXPECT_EQ(kept.told.at("x.used"), 2000);
  // Without being told to keep anything it gives it back when somebody waits for the device.
  const Ran given = memory("async:1500 free:0 sync shell:OTHER", again("a=alloc:2000") + state);
  EXPECT_EQ(given.told.at("a"), 0) << given.text;
  ::unlink((std::string(job_.path()) + ".state.memory").c_str());
}

TEST_F(GpuLimits, MemoryOutlivesItsPool) {
  limit(1000);
  const Ran ran =
      memory("fromnew:600 nopool a=fromnew:500 b=fromnew:400 x=real free:0 c=alloc:600 y=real");
  EXPECT_EQ(ran.told.at("a"), kOutOfMemory) << ran.text;
  EXPECT_EQ(ran.told.at("b"), 0);
  EXPECT_EQ(ran.told.at("x.used"), 1000);
  EXPECT_EQ(ran.told.at("c"), 0);
  EXPECT_EQ(ran.told.at("y.used"), 1000);
  EXPECT_EQ(used(), 1000);
}

TEST_F(GpuLimits, PoolsCountWhereTheyAre) {
  limit(1000);
  const Ran ran = memory(
      "device:0 alloc:10 a=fromhost:5000 b=fromhosts:5000 c=fromother:600 d=fromsecond:500 "
      "e=fromsecond:400 f=alloc:990 x=real:0 y=real:1",
      "FAKECUDA_DEVICES=2");
  for (const char* word : {"a", "b", "c", "e", "f"}) {
    EXPECT_EQ(ran.told.at(word), 0) << word << ran.text;
  }
  EXPECT_EQ(ran.told.at("d"), kOutOfMemory);
  EXPECT_EQ(ran.told.at("x.used"), 1000);
  EXPECT_EQ(ran.told.at("y.used"), 1000);
  EXPECT_EQ(used(0), 1000);
  EXPECT_EQ(used(1), 1000);
}

TEST_F(GpuLimits, PoolsCountWhatIsAllocatedFromThem) {
  limit(1000);
  const std::string cost = "FAKECUDA_CONTEXT=100";
  // The pool keeps what was freed, and that is nobody's overhead: also after NVML has been asked.
  const Ran ran = memory(
      "primary async:800 free:0 fromnew:700 free:1 b=async:800 free:2 module sleep:1100 "
      "c=async:800 "
      "d=async:101 free:3 e=fromnew:900 f=async:1",
      cost);
  EXPECT_EQ(ran.told.at("b"), 0) << ran.text;
  EXPECT_EQ(ran.told.at("c"), 0);
  EXPECT_EQ(ran.told.at("d"), kOutOfMemory);
  EXPECT_EQ(ran.told.at("e"), 0);
  EXPECT_EQ(ran.told.at("f"), kOutOfMemory);
}

TEST_F(GpuLimits, GraphsReserveWhenTheyAreLaunched) {
  limit(1'000'000);
  const Ran ran = memory(
      "graph:400000 a=alloc:900000 b=launch free:0 c=launch d=launch e=alloc:700000 f=alloc:500000 "
      "trim g=alloc:400000");
  EXPECT_EQ(ran.told.at("a"), 0) << ran.text;  // making it executable takes nothing
  EXPECT_EQ(ran.told.at("b"), kOutOfMemory);
  EXPECT_EQ(ran.told.at("c"), 0);
  EXPECT_EQ(ran.told.at("d"), 0);  // the memory is there already
  EXPECT_EQ(ran.told.at("e"), kOutOfMemory);
  EXPECT_EQ(ran.told.at("f"), 0);
  EXPECT_EQ(ran.told.at("g"), 0);
  EXPECT_EQ(used(), 900'000);
  EXPECT_EQ(job_.total(GpuQuantity::kAllocGraph), (Total{1, 400'000}));
}

// What is freed in a graph is there for what it allocates later.
TEST_F(GpuLimits, GraphsThatFreeReserveWhatTheyHaveAtATime) {
  limit(1'000'000);
  const Ran ran = memory(
      "loop:30:600000 a=launch x=real pairs:30:400000 b=launch y=real pairs:30:600000 c=launch "
      "trim "
      "anynodes:30:700000 d=launch z=real");
  EXPECT_EQ(ran.told.at("a"), 0) << ran.text;
  EXPECT_EQ(ran.told.at("x.used"), 600'000);
  EXPECT_EQ(ran.told.at("b"), 0);
  EXPECT_EQ(ran.told.at("y.used"), 800'000);
  EXPECT_EQ(ran.told.at("c"), kOutOfMemory);
  EXPECT_EQ(ran.told.at("d"), 0);
  EXPECT_EQ(ran.told.at("z.used"), 700'000);
  EXPECT_EQ(used(), 700'000);
  EXPECT_EQ(job_.total(GpuQuantity::kAllocGraph), (Total{120, 30 * 2'300'000}));
}

// The driver ends a capture when anybody asks it certain things meanwhile; we ask, and it must not.
TEST_F(GpuLimits, ACaptureIsNotEndedByWhatWeAsk) {
  limit(1'000'000);
  const Ran bare = Job::run_as("LD_LIBRARY_PATH=" ASSAY_FAKECUDA " " ASSAY_GPU_PROBE
                               " memory begin:0 x=alloc:1 y=end begin:2 z=alloc:1 w=end");
  EXPECT_EQ(bare.told.at("x"), 900) << bare.text;  // the fake knows how
  EXPECT_EQ(bare.told.at("y"), 901);
  EXPECT_EQ(bare.told.at("z"), 0);
  EXPECT_EQ(bare.told.at("w"), 0);
  const Ran ran = memory(
      "primary async:100 begin:0 i=info n=nvml:0 a=end free:0 begin:0 b=elsewhere:100 c=end "
      "module sleep:1100 begin:1 j=info d=end free:0 begin:0 e=elsewhere:2000000 f=end",
      "FAKECUDA_CONTEXT=300");
  for (const char* word : {"i", "n", "a", "b", "c", "j", "d", "f"}) {
    EXPECT_EQ(ran.told.at(word), 0) << word << ran.text;
  }
  EXPECT_EQ(ran.told.at("e"), kOutOfMemory);
}

TEST_F(GpuLimits, WhatIsAllocatedWhileAStreamIsCapturedIsTheGraphs) {
  limit(1'000'000);
  const Ran ran = memory("capture:600000 a=alloc:500000 b=launch free:0 c=launch");
  EXPECT_EQ(ran.told.at("a"), 0) << ran.text;
  EXPECT_EQ(ran.told.at("b"), kOutOfMemory);
  EXPECT_EQ(ran.told.at("c"), 0);
  EXPECT_EQ(used(), 600'000);
  EXPECT_EQ(job_.total(GpuQuantity::kAllocAsync).calls, 0);
}

// What nobody allocates: contexts and modules.
TEST_F(GpuLimits, ContextsAndModulesAreReconciledWithNvml) {
  limit(1000);
  const std::string cost =
      "FAKECUDA_CONTEXT=300 FAKECUDA_MODULE=50 FAKECUDA_STATE=" + std::string(job_.path()) +
      ".state";
  const Ran ran = memory(
      "primary a=alloc:800 b=alloc:600 module module sleep:1100 c=alloc:50 i=info n=nvml:0", cost);
  ::unlink((std::string(job_.path()) + ".state.memory").c_str());
  EXPECT_EQ(ran.told.at("a"), kOutOfMemory) << ran.text;
  EXPECT_EQ(ran.told.at("b"), 0);
  EXPECT_EQ(ran.told.at("c"), kOutOfMemory);
  EXPECT_EQ(ran.told.at("i.free"), 0);
  EXPECT_EQ(ran.told.at("n.used"), 1000);
  EXPECT_EQ(job_.region().slots[0].overhead[0].load(), 400);
  EXPECT_EQ(used(), 1000);
}

// While others allocate it cannot be told; then it is asked again soon.
TEST_F(GpuLimits, ALookThatWasDisturbedIsMadeAgain) {
  limit(1000);
  const Ran ran = memory("primary beside:300 sleep:1500 a=alloc:701 b=alloc:700",
                         "FAKECUDA_CONTEXT=300 FAKECUDA_NVML_MS=40");
  EXPECT_EQ(ran.told.at("a"), kOutOfMemory) << ran.text;
  EXPECT_EQ(ran.told.at("b"), 0);
}

TEST_F(GpuLimits, InANamespaceOfPidsTheOnlyProcessIsMeantAndOfSeveralNone) {
  limit(1000);
  const std::string state = std::string(job_.path()) + ".state";
  const std::string log = std::string(job_.path()) + ".log";
  const std::string settings =
      "FAKECUDA_CONTEXT=300 FAKECUDA_PID_SHIFT=500000 FAKECUDA_STATE=" + state +
      " ASSAY_GPU_LOG=" + log + " ";
  const std::string apart = "unshare --pid --fork --mount-proc ";
  const Ran ran =
      job_.run(apart + ASSAY_GPU_PROBE " memory primary a=alloc:701 b=alloc:700 shell:OTHER",
               settings + again("primary c=alloc:1"));
  ::unlink((state + ".memory").c_str());
  const Ran told = Job::run_as("cat " + log);
  ::unlink(log.c_str());
  if (ran.told.count("a") == 0) GTEST_SKIP() << ran.text;
  EXPECT_EQ(ran.told.at("a"), kOutOfMemory) << ran.text;
  EXPECT_EQ(ran.told.at("b"), 0);
  EXPECT_EQ(ran.told.at("c"), kOutOfMemory);  // the job's limit is reached
  EXPECT_EQ(job_.region().slots[0].overhead[0].load(), 300);
  EXPECT_EQ(job_.region().slots[1].overhead[0].load(), 0);
  EXPECT_NE(told.text.find("NVML does not tell"), std::string::npos) << told.text;
}

TEST_F(GpuLimits, WithoutNvmlLimitsHoldAllTheSame) {
  limit(1000);
  const std::string folder = std::string(job_.path()) + ".only";
  const Ran ran = memory("primary a=alloc:1001 b=alloc:1000 n=nvml:0",
                         "FAKECUDA_CONTEXT=300 LD_LIBRARY_PATH=" ASSAY_FAKECUDA "/versioned");
  EXPECT_EQ(ran.told.at("a"), kOutOfMemory) << ran.text;
  EXPECT_EQ(ran.told.at("b"), 0);
}

TEST_F(GpuLimits, NvmlIsNotLoadedWhereThereIsNoLimit) {
  const Ran ran = job_.run("sh -c 'exec " ASSAY_GPU_PROBE " memory primary alloc:100 shell:OTHER'",
                           "OTHER='grep -c nvidia-ml /proc/$PPID/maps'");
  EXPECT_EQ(ran.text, "0\n");
  limit(1000);
  const Ran limited = job_.run(ASSAY_GPU_PROBE " memory primary alloc:100 shell:OTHER",
                               "OTHER='grep -q nvidia-ml /proc/$PPID/maps && echo there 1'");
  EXPECT_EQ(limited.told.count("there"), 1) << limited.text;
}

TEST_F(GpuLimits, AChildHoldsNothingOfItsParents) {
  limit(1'000'000);
  const Ran ran =
      memory("alloc:600000 fork a=alloc:400000 b=alloc:1 c=free:0 d=alloc:1 free:1 e=alloc:400000");
  ASSERT_EQ(ran.status, 0) << ran.text;
  EXPECT_EQ(ran.told.at("a"), 0);
  EXPECT_EQ(ran.told.at("b"), kOutOfMemory);
  EXPECT_EQ(ran.told.at("c"), 0);             // the driver's business,
  EXPECT_EQ(ran.told.at("d"), kOutOfMemory);  // and its parent still has it
  EXPECT_EQ(ran.told.at("e"), 0);
  EXPECT_EQ(job_.region().header.next_slot.load(), 2);
}

TEST_F(GpuLimits, AChildsGraphsAreItsOwn) {
  limit(1'000'000);
  const Ran ran =
      memory("graph:400000 launch fork graph:400000 a=launch b=alloc:250000 c=alloc:190000");
  EXPECT_EQ(ran.told.at("a"), 0) << ran.text;
  EXPECT_EQ(ran.told.at("b"), kOutOfMemory);
  EXPECT_EQ(ran.told.at("c"), 0);
}

TEST_F(GpuLimits, AProgramThatBecomesAnotherHoldsNothingAnyMore) {
  limit(1000);
  const Ran ran = memory("alloc:900 exec:OTHER", again("a=alloc:1000"));
  ASSERT_EQ(ran.status, 0) << ran.text;
  EXPECT_EQ(ran.told.at("a"), 0) << ran.text;
  EXPECT_EQ(used(), 1000);
}

TEST_F(GpuLimits, WhatTheDeadHoldIsTakenBackWhenItIsWanted) {
  limit(1000);
  for (int i = 0; i < 3; ++i) (void)memory("alloc:300 kill");
  EXPECT_EQ(used(), 900);
  const Ran ran = memory("a=alloc:1000 b=alloc:1");
  EXPECT_EQ(ran.told.at("a"), 0) << ran.text;
  EXPECT_EQ(ran.told.at("b"), kOutOfMemory);
  EXPECT_EQ(used(), 1000);
}

TEST_F(GpuLimits, WhatIsToldLeavesOutTheDead) {
  limit(1000);
  (void)memory("alloc:300 exit");
  (void)memory("alloc:400 kill");
  const Ran driver = memory("i=info alloc:100 kill");
  EXPECT_EQ(driver.told.at("i.free"), 1000) << driver.text;
  const Ran nvml = memory("n=nvml:0 m=nvml2:0");
  EXPECT_EQ(nvml.told.at("n.used"), 0) << nvml.text;
  EXPECT_EQ(nvml.told.at("n.free"), 1000);
  EXPECT_EQ(nvml.told.at("m.used"), 0);
  EXPECT_EQ(used(), 0);
}

// Parents that do not ask how their children ended leave a name of them behind, and nothing else.
TEST_F(GpuLimits, WhoIsDeadAndNotBuriedHoldsNothing) {
  limit(1000);
  const Ran ran = memory("a=bury:OTHER b=alloc:1000", again("alloc:900 kill"));
  EXPECT_EQ(ran.told.at("a"), 0) << ran.text;
  EXPECT_EQ(ran.told.at("b"), 0) << ran.text;
}

// Killed while they allocate at the limit, beside others who are not.
TEST_F(GpuLimits, ProcessesKilledAtAnyMomentLoseNothing) {
  limit(20'000);
  std::minstd_rand random(7);
  std::thread beside([&] {
    const Ran ran = memory("churn:15000:1500", "FAKECUDA_MEMORY=1000000000000");
    EXPECT_EQ(ran.status, 0) << ran.text;
  });
  for (int round = 0; round < 25; ++round) {
    (void)job_.run("timeout -s KILL 0.0" + std::to_string(10 + random() % 30) +
                   " " ASSAY_GPU_PROBE " memory churn:100000000:1500");
  }
  beside.join();
  EXPECT_LE(used(), 20'000);
  // The last one killed may still be dying.
  Ran last;
  for (int round = 0; round < 50 && (round == 0 || last.told["a"] != 0); ++round) {
    if (round > 0) ::usleep(20'000);
    last = memory("a=alloc:20000 b=alloc:1 free:0");
  }
  EXPECT_EQ(last.told.at("a"), 0) << last.text;
  EXPECT_EQ(last.told.at("b"), kOutOfMemory);
  EXPECT_EQ(used(), 0);
  EXPECT_GT(job_.total(GpuQuantity::kRefused).calls, 100);
}

TEST_F(GpuLimits, ThreadsAtTheLimitAddUpToNothing) {
  limit(9000);
  const Ran ran = memory("churn:20000:1500 a=alloc:9000 b=alloc:1");
  EXPECT_EQ(ran.told.at("a"), 0) << ran.text;
  EXPECT_EQ(ran.told.at("b"), kOutOfMemory);
  EXPECT_EQ(used(), 9000);
}

TEST_F(GpuLimits, ThreadsThatShareAPoolStayBelowTheLimit) {
  limit(9000);
  for (const std::string keep : {"keep ", ""}) {
    const Ran ran = memory(keep + "c=churnpool:5000:1500 x=real a=alloc:9000 y=real b=async:1");
    EXPECT_LE(ran.told.at("c.most"), 9000) << ran.text;
    EXPECT_GT(ran.told.at("c.most"), 8000);
    EXPECT_LE(ran.told.at("x.used"), 9000);
    EXPECT_EQ(ran.told.at("a"), 0);
    EXPECT_EQ(ran.told.at("y.used"), 9000);
    EXPECT_EQ(ran.told.at("b"), kOutOfMemory);
    EXPECT_EQ(used(), 9000);
  }
}

TEST_F(GpuLimits, WithoutALimitPoolsCountWhatIsAllocated) {
  const Ran ran = memory("keep c=churnpool:3000:1500 async:500 fromnew:300 free:1");
  EXPECT_EQ(ran.status, 0) << ran.text;
  EXPECT_EQ(used(), 500);
}

TEST_F(GpuLimits, ALoweredLimitHoldsForWhatPoolsKeepToo) {
  limit(2000);
  const std::string file = std::string(job_.path()) + ".new";
  const std::uint64_t bytes = 900;
  std::ofstream(file, std::ios::binary).write(reinterpret_cast<const char*>(&bytes), sizeof bytes);
  constexpr std::size_t kAt = offsetof(wire::GpuHeader, limits);
  const Ran ran = memory("keep async:1000 async:800 free:1 shell:OTHER a=async:100 x=real",
                         "OTHER='dd if=" + file + " of=" + job_.path() +
                             " bs=1 conv=notrunc seek=" + std::to_string(kAt) + " 2>/dev/null'");
  ::unlink(file.c_str());
  EXPECT_EQ(ran.told.at("a"), kOutOfMemory) << ran.text;
  EXPECT_EQ(ran.told.at("x.used"), 1000);
}

TEST_F(GpuLimits, NonsenseInTheRegionHarmsNobody) {
  limit(1000);
  for (wire::GpuSlot& slot : job_.region().slots) {
    slot.entry = ~0ULL;
    slot.entry_line = 77;
    slot.confirmed = ~0ULL;
  }
  job_.region().devices[0].last = ~0ULL;
  job_.region().header.next_slot = 5;
  const Ran ran = memory("a=alloc:1000 b=alloc:1 free:0");
  ASSERT_EQ(ran.status, 0) << ran.text;
  EXPECT_EQ(ran.told.at("a"), 0);
  EXPECT_EQ(ran.told.at("b"), kOutOfMemory);
  EXPECT_EQ(used(), 0);
}

// Another user's, or one that was removed.
TEST_F(GpuLimits, ARegionThatCannotBeOpenedIsSaid) {
  limit(1000);
  const std::string log = std::string(job_.path()) + ".log";
  const Ran ran = memory("a=alloc:2000", "ASSAY_GPU_REGION=" + std::string(job_.path()) +
                                             ".gone ASSAY_GPU_LOG=" + log);
  const Ran told = Job::run_as("cat " + log);
  ::unlink(log.c_str());
  ASSERT_EQ(ran.status, 0) << ran.text;
  EXPECT_EQ(ran.told.at("a"), 0);
  EXPECT_NE(told.text.find("no limit holds in this process"), std::string::npos) << told.text;
  EXPECT_EQ(used(), 0);
}

TEST_F(GpuLimits, WithoutASlotMemoryIsTheDriversAndThatIsSaid) {
  limit(1000);
  const std::string log = std::string(job_.path()) + ".log";
  const int file = ::open(job_.path(), O_RDWR | O_CLOEXEC);
  struct flock all {};
  all.l_type = F_WRLCK;
  ASSERT_EQ(::fcntl(file, F_SETLK, &all), 0);  // every slot has an owner
  const Ran ran = memory("a=alloc:600 b=alloc:600 free:0", "ASSAY_GPU_LOG=" + log);
  ::close(file);
  const Ran told = Job::run_as("cat " + log);
  ::unlink(log.c_str());
  ASSERT_EQ(ran.status, 0) << ran.text;
  EXPECT_EQ(ran.told.at("a"), 0);
  EXPECT_EQ(ran.told.at("b"), 0);
  EXPECT_NE(told.text.find("is not limited"), std::string::npos) << told.text;
}

}  // namespace
}  // namespace assay::gpu
