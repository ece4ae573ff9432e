// Memory kept by pools and graphs, and arrays without memory of their own: limits apply to what is
// really allocated, according to the fake driver.
#include <gtest/gtest.h>

#include "observe/shim/gpu/testing/limits.h"

namespace assay::gpu {
namespace {

using testing::GpuTestRun;
using testing::kOutOfMemory;
using testing::ProgramOutput;
using wire::GpuQuantity;
using Total = wire::GpuTotals::Total;
class GpuPools : public testing::GpuLimitsTest {};

TEST_F(GpuPools, ArraysCountByTheirFormat) {
  limit(10'000);
  // 100 × 40 elements, of 12 bits (NV12), of 4 (BC1), of four normalised 16-bit channels.
  const ProgramOutput ran = memory(
      "array3d:100:40:176:3:0 a=alloc:4001 b=alloc:4000 free:2 free:0 "
      "array3d:100:40:145:4:0 c=alloc:8001 d=alloc:8000 free:5 free:3 "
      "e=array3d:100:40:197:4:0 f=array3d:100:12:197:4:0");
  for (const char* word : {"a", "c", "e"}) EXPECT_EQ(ran.values.at(word), kOutOfMemory) << ran.text;
  for (const char* word : {"b", "d", "f"}) EXPECT_EQ(ran.values.at(word), 0) << word << ran.text;
  EXPECT_EQ(used(), 9600);
}

TEST_F(GpuPools, ArraysWithoutMemoryOfTheirOwnCountNothing) {
  limit(10'000);
  const ProgramOutput ran = memory(
      "a=array3d:50000:1:1:1:64 b=array3d:50000:1:1:1:128 c=mipmap:50000:4:64 d=mipmap:50000:4:128 "
      "e=alloc:10000 f=array3d:1:1:1:1:0");
  for (const char* word : {"a", "b", "c", "d", "e"}) {
    EXPECT_EQ(ran.values.at(word), 0) << word << ran.text;
  }
  EXPECT_EQ(ran.values.at("f"), kOutOfMemory);
  EXPECT_EQ(used(), 10'000);
}

// Pools belong to devices: their allocations outlive the context.
TEST_F(GpuPools, AContextLeavesPoolsAlone) {
  limit(1000);
  const ProgramOutput ran = memory(
      "primary async:700 reset x=real a=alloc:301 b=alloc:300 free:0 sync c=alloc:700 y=real "
      "ctx async:0 destroy");
  EXPECT_EQ(ran.values.at("x.used"), 700) << ran.text;
  EXPECT_EQ(ran.values.at("a"), kOutOfMemory);
  EXPECT_EQ(ran.values.at("b"), 0);
  EXPECT_EQ(ran.values.at("c"), 0);
  EXPECT_EQ(ran.values.at("y.used"), 1000);
}

// What a pool holds is charged, and trimmed before an allocation is refused.
TEST_F(GpuPools, PooledMemoryIsCountedOnce) {
  limit(2000);
  const ProgramOutput ran = memory(
      "keep async:1500 free:0 i=info a=async:1500 x=real free:1 sync b=alloc:1500 y=real "
      "c=async:600 d=async:500 z=real e=create:1");
  EXPECT_EQ(ran.values.at("i.free"), 500) << ran.text;
  EXPECT_EQ(ran.values.at("a"), 0);  // from what it holds
  EXPECT_EQ(ran.values.at("x.used"), 1500);
  EXPECT_EQ(ran.values.at("b"), 0);
  EXPECT_EQ(ran.values.at("y.used"), 1500);
  EXPECT_EQ(ran.values.at("c"), kOutOfMemory);
  EXPECT_EQ(ran.values.at("d"), 0);
  EXPECT_EQ(ran.values.at("z.used"), 2000);
  EXPECT_EQ(ran.values.at("e"), kOutOfMemory);
  EXPECT_EQ(used(), 2000);
}

// As on a full card: freed memory stays with the pool until a synchronization.
TEST_F(GpuPools, MemoryFreedWithoutASynchronizationStaysWithThePool) {
  limit(2000);
  const ProgramOutput ran =
      memory("async:1500 free:0 a=alloc:1500 b=async:1500 free:2 sync c=alloc:1500");
  EXPECT_EQ(ran.values.at("a"), kOutOfMemory) << ran.text;
  EXPECT_EQ(ran.values.at("b"), 0);
  EXPECT_EQ(ran.values.at("c"), 0);
}

TEST_F(GpuPools, PooledMemoryIsNotAvailableToOtherProcesses) {
  limit(2000);
  const std::string state = " FAKECUDA_STATE=" + run_.file("state");
  const ProgramOutput kept = memory("keep async:1500 free:0 sync shell:OTHER",
                                    again("a=alloc:501 b=alloc:500 x=real") + state);
  EXPECT_EQ(kept.values.at("a"), kOutOfMemory) << kept.text;
  EXPECT_EQ(kept.values.at("b"), 0);
  EXPECT_EQ(kept.values.at("x.used"), 2000);
  // By default it releases memory at a synchronization.
  const ProgramOutput given =
      memory("async:1500 free:0 sync shell:OTHER", again("a=alloc:2000") + state);
  EXPECT_EQ(given.values.at("a"), 0) << given.text;
}

TEST_F(GpuPools, MemoryOutlivesItsPool) {
  limit(1000);
  const ProgramOutput ran =
      memory("fromnew:600 nopool a=fromnew:500 b=fromnew:400 x=real free:0 c=alloc:600 y=real");
  EXPECT_EQ(ran.values.at("a"), kOutOfMemory) << ran.text;
  EXPECT_EQ(ran.values.at("b"), 0);
  EXPECT_EQ(ran.values.at("x.used"), 1000);
  EXPECT_EQ(ran.values.at("c"), 0);
  EXPECT_EQ(ran.values.at("y.used"), 1000);
  EXPECT_EQ(used(), 1000);
}

TEST_F(GpuPools, PoolsCountWhereTheyAre) {
  limit(1000);
  const ProgramOutput ran = memory(
      "device:0 alloc:10 a=fromhost:5000 b=fromhosts:5000 c=fromother:600 d=fromsecond:500 "
      "e=fromsecond:400 f=alloc:990 x=real:0 y=real:1",
      "FAKECUDA_DEVICES=2");
  for (const char* word : {"a", "b", "c", "e", "f"}) {
    EXPECT_EQ(ran.values.at(word), 0) << word << ran.text;
  }
  EXPECT_EQ(ran.values.at("d"), kOutOfMemory);
  EXPECT_EQ(ran.values.at("x.used"), 1000);
  EXPECT_EQ(ran.values.at("y.used"), 1000);
  EXPECT_EQ(used(0), 1000);
  EXPECT_EQ(used(1), 1000);
}

TEST_F(GpuPools, PoolsCountWhatIsAllocatedFromThem) {
  limit(1000);
  const std::string cost = "FAKECUDA_CONTEXT=100";
  // The pool keeps freed memory, which is not overhead, also after NVML was queried.
  const ProgramOutput ran = memory(
      "primary async:800 free:0 sync fromnew:700 free:1 sync b=async:800 free:2 module sleep:1100 "
      "c=async:800 d=async:101 free:3 sync e=fromnew:900 f=async:1",
      cost);
  EXPECT_EQ(ran.values.at("b"), 0) << ran.text;
  EXPECT_EQ(ran.values.at("c"), 0);
  EXPECT_EQ(ran.values.at("d"), kOutOfMemory);
  EXPECT_EQ(ran.values.at("e"), 0);
  EXPECT_EQ(ran.values.at("f"), kOutOfMemory);
}

TEST_F(GpuPools, GraphsReserveWhenTheyAreLaunched) {
  limit(1'000'000);
  const ProgramOutput ran = memory(
      "graph:400000 a=alloc:900000 b=launch free:0 c=launch d=launch e=alloc:700000 f=alloc:500000 "
      "trim g=alloc:400000");
  EXPECT_EQ(ran.values.at("a"), 0) << ran.text;  // instantiation allocates nothing
  EXPECT_EQ(ran.values.at("b"), kOutOfMemory);
  EXPECT_EQ(ran.values.at("c"), 0);
  EXPECT_EQ(ran.values.at("d"), 0);  // the memory is already allocated
  EXPECT_EQ(ran.values.at("e"), kOutOfMemory);
  EXPECT_EQ(ran.values.at("f"), 0);
  EXPECT_EQ(ran.values.at("g"), 0);
  EXPECT_EQ(used(), 900'000);
  EXPECT_EQ(run_.total(GpuQuantity::kAllocGraph), (Total{1, 400'000}));
}

// Memory freed in a graph is available to its later allocations.
TEST_F(GpuPools, GraphsThatFreeReserveWhatTheyHaveAtATime) {
  limit(1'000'000);
  const ProgramOutput ran = memory(
      "loop:30:600000 a=launch x=real pairs:30:400000 b=launch y=real pairs:30:600000 c=launch "
      "trim "
      "anynodes:30:700000 d=launch z=real");
  EXPECT_EQ(ran.values.at("a"), 0) << ran.text;
  EXPECT_EQ(ran.values.at("x.used"), 600'000);
  EXPECT_EQ(ran.values.at("b"), 0);
  EXPECT_EQ(ran.values.at("y.used"), 800'000);
  EXPECT_EQ(ran.values.at("c"), kOutOfMemory);
  EXPECT_EQ(ran.values.at("d"), 0);
  EXPECT_EQ(ran.values.at("z.used"), 700'000);
  EXPECT_EQ(used(), 700'000);
  EXPECT_EQ(run_.total(GpuQuantity::kAllocGraph), (Total{120, 30 * 2'300'000}));
}

// Certain queries invalidate a capture; the library makes them, and they must not.
TEST_F(GpuPools, OurQueriesDoNotInvalidateACapture) {
  limit(1'000'000);
  const ProgramOutput bare =
      GpuTestRun::run_as("LD_LIBRARY_PATH=" ASSAY_FAKECUDA " " ASSAY_GPU_PROBE
                         " memory begin:0 x=alloc:1 y=end begin:2 z=alloc:1 w=end");
  EXPECT_EQ(bare.values.at("x"), 900) << bare.text;  // as the fake driver models it
  EXPECT_EQ(bare.values.at("y"), 901);
  EXPECT_EQ(bare.values.at("z"), 0);
  EXPECT_EQ(bare.values.at("w"), 0);
  const ProgramOutput ran = memory(
      "primary async:100 begin:0 i=info n=nvml:0 a=end free:0 begin:0 b=elsewhere:100 c=end "
      "module sleep:1100 begin:1 j=info d=end free:0 begin:0 e=elsewhere:2000000 f=end",
      "FAKECUDA_CONTEXT=300");
  for (const char* word : {"i", "n", "a", "b", "c", "j", "d", "f"}) {
    EXPECT_EQ(ran.values.at(word), 0) << word << ran.text;
  }
  EXPECT_EQ(ran.values.at("e"), kOutOfMemory);
}

TEST_F(GpuPools, WhatIsAllocatedWhileAStreamIsCapturedIsTheGraphs) {
  limit(1'000'000);
  const ProgramOutput ran = memory("capture:600000 a=alloc:500000 b=launch free:0 c=launch");
  EXPECT_EQ(ran.values.at("a"), 0) << ran.text;
  EXPECT_EQ(ran.values.at("b"), kOutOfMemory);
  EXPECT_EQ(ran.values.at("c"), 0);
  EXPECT_EQ(used(), 600'000);
  EXPECT_EQ(run_.total(GpuQuantity::kAllocAsync).calls, 0);
}

TEST_F(GpuPools, AChildsGraphsAreItsOwn) {
  limit(1'000'000);
  const ProgramOutput ran =
      memory("graph:400000 launch fork graph:400000 a=launch b=alloc:250000 c=alloc:190000");
  EXPECT_EQ(ran.values.at("a"), 0) << ran.text;
  EXPECT_EQ(ran.values.at("b"), kOutOfMemory);
  EXPECT_EQ(ran.values.at("c"), 0);
}

TEST_F(GpuPools, ThreadsThatShareAPoolStayBelowTheLimit) {
  limit(9000);
  for (const std::string keep : {"keep ", ""}) {
    const ProgramOutput ran =
        memory(keep + "c=churnpool:5000:1500 sync x=real a=alloc:9000 y=real b=async:1");
    EXPECT_LE(ran.values.at("c.most"), 9000) << ran.text;
    EXPECT_GT(ran.values.at("c.most"), 8000);
    EXPECT_LE(ran.values.at("x.used"), 9000);
    EXPECT_EQ(ran.values.at("a"), 0);
    EXPECT_EQ(ran.values.at("y.used"), 9000);
    EXPECT_EQ(ran.values.at("b"), kOutOfMemory);
    EXPECT_EQ(used(), 9000);
  }
}

TEST_F(GpuPools, WithoutALimitPoolsCountWhatIsAllocated) {
  const ProgramOutput ran = memory("keep c=churnpool:3000:1500 async:500 fromnew:300 free:1");
  EXPECT_EQ(ran.status, 0) << ran.text;
  EXPECT_EQ(used(), 500);
}

TEST_F(GpuPools, ALoweredLimitHoldsForWhatPoolsKeepToo) {
  limit(2000);
  const ProgramOutput ran = memory_with_new_limit(
      "keep async:1000 async:800 free:1 sync shell:OTHER a=async:100 x=real", 900);
  EXPECT_EQ(ran.values.at("a"), kOutOfMemory) << ran.text;
  EXPECT_EQ(ran.values.at("x.used"), 1000);
}

}  // namespace
}  // namespace assay::gpu
