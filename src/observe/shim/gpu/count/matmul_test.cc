// Matmuls: flops match the sizes, counted once for every function, version and method of lookup,
// with unchanged arguments.
#include <gtest/gtest.h>

#include "observe/shim/gpu/count/blas.h"
#include "observe/shim/gpu/testing/run.h"

namespace assay::gpu {
namespace {

using testing::GpuTestRun;
using testing::ProgramOutput;
using Total = wire::GpuTotals::Total;

constexpr unsigned long kFunctions = 41;  // of blas_entries.inc

Total asked(const ProgramOutput& ran) {
  return {ran.values.at("made"), ran.values.at("mflops")};
}

// The same without the library.
ProgramOutput bare(const std::string& words) {
  return GpuTestRun::run_as("LD_LIBRARY_PATH=" ASSAY_FAKECUDA " " ASSAY_GPU_PROBE " " + words);
}

class EveryMatmul : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryMatmul, IsCountedOnceAndGivenOnUnchanged) {
  const GpuTestRun run;
  const std::string words = "matmuls " + GetParam();
  const ProgramOutput ran = run.probe(words);
  ASSERT_EQ(ran.status, 0) << ran.text;
  EXPECT_EQ(ran.values.at("functions"), kFunctions);
  EXPECT_EQ(ran.values.at("failed"), 0);
  EXPECT_EQ(run.total(GpuQuantity::kMatmul), asked(ran)) << ran.text;
  EXPECT_EQ(wire::sum_of(run.region()).flops_left[0], ran.values.at("rest"));
  EXPECT_EQ(run.total(GpuQuantity::kMatmulCaptured).calls, 0);
  // cuBLAS called cuBLASLt for some of them.
  EXPECT_GT(ran.values.at("calls0") + ran.values.at("lt_calls"), ran.values.at("made") / 2);
  EXPECT_EQ(ran.text, bare(words).text);
}

INSTANTIATE_TEST_SUITE_P(Gpu, EveryMatmul,
                         ::testing::Values("13 41 1", "12 41 2", "13 2000 3", "12 2000 4",
                                           "12,13 500 5", "13,12 500 6", "13 300 7 threads",
                                           "13 100 8 default", "12 100 9 default"));

TEST(GpuMatmul, TheInnerCallOfAnotherLibraryIsNotCounted) {
  const GpuTestRun run;
  const ProgramOutput ran = run.probe("matmuls 13 41 1");
  ASSERT_EQ(ran.status, 0) << ran.text;
  // One of cuBLASLt's own, and those of cublasGemmEx and cublasGemmEx_64.
  EXPECT_EQ(ran.values.at("lt_calls"), 3);
  EXPECT_EQ(run.total(GpuQuantity::kMatmul).calls, 41);
}

TEST(GpuMatmul, WhatIsCapturedIsACallThatHasNotRun) {
  const GpuTestRun run;
  const ProgramOutput ran = run.probe("matmuls 13 60 1 capture");
  ASSERT_EQ(ran.status, 0) << ran.text;
  EXPECT_EQ(run.total(GpuQuantity::kMatmul), (Total{60, 0}));
  EXPECT_EQ(wire::sum_of(run.region()).flops_left[0], 0);
  EXPECT_EQ(run.total(GpuQuantity::kMatmulCaptured), asked(ran));
  EXPECT_EQ(wire::sum_of(run.region()).flops_left[1], ran.values.at("rest"));
}

TEST(GpuMatmul, WhatTheLibraryRefusesIsACallWithoutFlops) {
  const GpuTestRun run;
  const ProgramOutput ran = run.probe("matmuls 13 60 1 fail");
  ASSERT_EQ(ran.status, 0) << ran.text;
  EXPECT_EQ(ran.values.at("failed"), 60);
  EXPECT_EQ(run.total(GpuQuantity::kMatmul), (Total{60, 0}));
  EXPECT_EQ(wire::sum_of(run.region()).flops_left[0], 0);
}

TEST(GpuMatmul, DescriptionsThatCannotBeReadAreACallWithoutFlops) {
  const GpuTestRun run;
  const ProgramOutput ran = run.probe("matmuls 13 41 1", "FAKEBLAS_NO_ATTRIBUTES=1");
  ASSERT_EQ(ran.status, 0) << ran.text;
  EXPECT_EQ(ran.values.at("failed"), 0);
  const GpuTestRun other;
  const ProgramOutput all = other.probe("matmuls 13 41 1");
  EXPECT_EQ(run.total(GpuQuantity::kMatmul).calls, 41);
  EXPECT_LT(run.total(GpuQuantity::kMatmul).amount, other.total(GpuQuantity::kMatmul).amount);
  EXPECT_GT(run.total(GpuQuantity::kMatmul).amount, 0);
}

// Days of GPU work: more flops than fit into 64 bits.
TEST(GpuMatmul, SumsBeyond64BitsAreRight) {
  const GpuTestRun run;
  const ProgramOutput ran = run.probe("matmuls 13 400 1 huge");
  ASSERT_EQ(ran.status, 0) << ran.text;
  EXPECT_GT(ran.values.at("mflops"), ~0UL / wire::kGpuFlopUnit);
  EXPECT_EQ(run.total(GpuQuantity::kMatmul), asked(ran));
  EXPECT_EQ(wire::sum_of(run.region()).flops_left[0], ran.values.at("rest"));
}

TEST(GpuMatmul, AProductBeyond64BitsIsACallWithoutFlops) {
  const GpuTestRun run;
  const ProgramOutput ran = run.probe("matmuls 13 41 1 impossible");
  ASSERT_EQ(ran.status, 0) << ran.text;
  EXPECT_EQ(run.total(GpuQuantity::kMatmul), (Total{41, 0}));
}

TEST(GpuMatmul, AnUnknownLibraryIsLeftAlone) {
  const GpuTestRun run;
  const ProgramOutput ran = run.probe("matmuls 14 41 1");
  ASSERT_EQ(ran.status, 0) << ran.text;
  EXPECT_EQ(ran.text, bare("matmuls 14 41 1").text);
  EXPECT_EQ(run.total(GpuQuantity::kMatmul).calls, 0);
}

TEST(GpuMatmul, WithoutARegionNothingChanges) {
  const GpuTestRun run;
  const ProgramOutput ran = run.probe("matmuls 12,13 41 1", "ASSAY_GPU_REGION=/nowhere");
  EXPECT_EQ(ran.text, bare("matmuls 12,13 41 1").text);
  EXPECT_EQ(run.total(GpuQuantity::kMatmul).calls, 0);
}

TEST(GpuMatmul, TypesAreComplexOrNot) {
  for (const int type : {4, 5, 6, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27}) {
    EXPECT_EQ(factor_of(type), 8U) << type;
  }
  for (const int type : {-1, 0, 1, 2, 3, 8, 10, 14, 16, 28, 29, 30, 33, 100}) {
    EXPECT_EQ(factor_of(type), 2U) << type;
  }
}

}  // namespace
}  // namespace assay::gpu
