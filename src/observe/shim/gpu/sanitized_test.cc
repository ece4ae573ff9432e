// The same library and probe under AddressSanitizer with UBSan, and under ThreadSanitizer.
#include <gtest/gtest.h>

#include "observe/shim/gpu/testing/run.h"

namespace assay::gpu {
namespace {

using testing::GpuTestRun;
using testing::ProgramOutput;
using wire::GpuQuantity;

class UnderASanitizer : public ::testing::TestWithParam<std::string> {
 protected:
  [[nodiscard]] ProgramOutput probe(const std::string& words,
                                    const std::string& settings = "") const {
    return run_.run(ASSAY_GPU_PROBE "_" + GetParam() + " " + words,
                    "LD_PRELOAD= ASAN_OPTIONS=detect_leaks=0 TSAN_OPTIONS=exitcode=66 " + settings);
  }
  GpuTestRun run_;
};

TEST_P(UnderASanitizer, LookupsAreRight) {
  const ProgramOutput ran =
      probe("lookups " ASSAY_SOURCE_DIR "/tests/data/gpu/cudart13_lookups.txt v2 dlsym");
  ASSERT_EQ(ran.status, 0) << ran.text;
  EXPECT_EQ(ran.values.at("wrong"), 0) << ran.text;
  EXPECT_EQ(ran.values.at("wrapped"), 108) << ran.text;
}

TEST_P(UnderASanitizer, CountsAreExact) {
  const ProgramOutput threads = probe("threads 4 5000");
  ASSERT_EQ(threads.status, 0) << threads.text;
  const ProgramOutput churn = probe("churn 50");
  ASSERT_EQ(churn.status, 0) << churn.text;
  EXPECT_EQ(run_.total(GpuQuantity::kKernel).calls, 20150);
}

TEST_P(UnderASanitizer, NothingIsFoundInAnyOfTheOthers) {
  for (const char* words :
       {"forks 2 100", "late_thread 10", "closes_everything 5", "every_kind", "allocations",
        "many_blocks 300", "graphs 3", "capture", "nccl", "reload 3", "at_exit",
        "matmuls 12,13 60 1 threads", "matmuls 13 41 2 capture", "matmuls 14 41 3 fail"}) {
    const ProgramOutput ran = probe(words);
    EXPECT_EQ(ran.status, 0) << words << "\n" << ran.text;
  }
  EXPECT_EQ(run_.total(GpuQuantity::kGraph).calls, 7);
  EXPECT_EQ(run_.total(GpuQuantity::kMatmul).calls, 4 * 2 * 60 + 41);
}

TEST_P(UnderASanitizer, NothingIsFoundAtALimit) {
  run_.region().header.limits.bytes = 1'000'000;
  const ProgramOutput ran = probe(
      "memory primary alloc:300000 async:1000 free:1 fromnew:1000 nopool create:5000 map:3 free:3 "
      "unmap:3 array:100 mipmap:100:9 pitch:100:10 i=info n=nvml:0 m=nvml2:0 graph:10000 launch "
      "trim "
      "capture:5000 launch loop:3:5000 launch module over=alloc:900000 churnpool:500:90000 sync "
      "fork churn:2000:90000 reset a=alloc:400000");
  ASSERT_EQ(ran.status, 0) << ran.text;
  EXPECT_EQ(ran.values.at("over"), 2) << ran.text;
  EXPECT_EQ(ran.values.at("a"), 0) << ran.text;
  EXPECT_EQ(ran.values.at("n.total"), 1'000'000);
  EXPECT_GT(run_.total(GpuQuantity::kRefused).calls, 1);
  // With HAMi's variables alone.
  const ProgramOutput hami =
      run_.run(ASSAY_GPU_PROBE "_" + GetParam() + " memory a=alloc:1001 b=alloc:1000",
               "LD_PRELOAD= ASSAY_GPU_REGION= ASAN_OPTIONS=detect_leaks=0 "
               "CUDA_DEVICE_MEMORY_LIMIT=1000 CUDA_DEVICE_MEMORY_SHARED_CACHE=" +
                   std::string(run_.path()));
  ::unlink((std::string(run_.path()) + ".assay-gpu-" + std::to_string(wire::kGpuVersion)).c_str());
  EXPECT_EQ(hami.status, 0) << hami.text;
  EXPECT_EQ(hami.values.at("a"), 2) << hami.text;
  EXPECT_EQ(hami.values.at("b"), 0) << hami.text;
}

// The same with a share: every launch may come to the pacing point, from several threads.
TEST_P(UnderASanitizer, NothingIsFoundWhereLaunchesArePaced) {
  run_.region().header.limits.share = 900;
  const std::string turns = std::string(run_.path()) + ".turns";
  for (const char* words : {"threads 4 1000", "forks 2 100", "churn 20", "graphs 3", "capture",
                            "paced 500 cuLaunchKernelEx", "reload 3", "at_exit"}) {
    const ProgramOutput ran = probe(words, "FAKECUDA_LAUNCH_NS=2000 ASSAY_GPU_TURNS=" + turns);
    EXPECT_EQ(ran.status, 0) << words << "\n" << ran.text;
  }
  ::unlink(turns.c_str());
  EXPECT_GT(run_.region().devices[0].busy_ns.load(), 0);
}

INSTANTIATE_TEST_SUITE_P(Gpu, UnderASanitizer, ::testing::Values("address", "thread"));

}  // namespace
}  // namespace assay::gpu
