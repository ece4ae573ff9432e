// Lookups: every method of lookup returns the driver's own function or its wrapper.
#include <gtest/gtest.h>

#include "observe/shim/gpu/testing/run.h"

namespace assay::gpu {
namespace {

using testing::GpuTestRun;
using testing::ProgramOutput;
using wire::GpuQuantity;

constexpr const char* kLookups = ASSAY_SOURCE_DIR "/tests/data/gpu/cudart13_lookups.txt";
constexpr const char* kEntries = ASSAY_SOURCE_DIR "/tests/fakecuda/entries.inc";
// The driver with symbol versions, which dlvsym needs.
constexpr const char* kVersioned = "LD_LIBRARY_PATH=" ASSAY_FAKECUDA "/versioned";

class EveryLookup : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {};

TEST_P(EveryLookup, OfTheCudaRuntimeIsRight) {
  const auto& [form, loader] = GetParam();
  const GpuTestRun run;
  const ProgramOutput ran =
      run.probe(std::string("lookups ") + kLookups + " " + form + " " + loader, kVersioned);
  ASSERT_EQ(ran.status, 0) << ran.text;
  EXPECT_EQ(ran.values.at("lookups"), 440) << ran.text;
  EXPECT_EQ(ran.values.at("per_thread"), 74);
  EXPECT_EQ(ran.values.at("wrong"), 0) << ran.text;
  // As many as entries.inc has: a wrapper that is never returned counts nothing.
  EXPECT_EQ(ran.values.at("wrapped"), 108) << ran.text;
}

INSTANTIATE_TEST_SUITE_P(Gpu, EveryLookup,
                         ::testing::Combine(::testing::Values("v1", "v2"),
                                            ::testing::Values("dlsym", "dlvsym")));

TEST(GpuLookup, EverySymbolOfTheDriverByName) {
  const GpuTestRun run;
  for (const char* loader : {"dlsym", "dlvsym"}) {
    const ProgramOutput ran =
        run.probe(std::string("symbols ") + kEntries + " " + loader, kVersioned);
    ASSERT_EQ(ran.status, 0) << ran.text;
    EXPECT_EQ(ran.values.at("lookups"), 673);
    EXPECT_EQ(ran.values.at("wrong"), 0) << ran.text;
    EXPECT_EQ(ran.values.at("wrapped"), 158);
  }
}

TEST(GpuLookup, EveryVersionAndFlagOfEveryName) {
  const GpuTestRun run;
  const ProgramOutput ran = run.probe(std::string("everything ") + kEntries);
  ASSERT_EQ(ran.status, 0) << ran.text;
  EXPECT_EQ(ran.values.at("lookups"), 673 * 6 * 3);
  EXPECT_EQ(ran.values.at("wrong"), 0) << ran.text;
  EXPECT_GT(ran.values.at("wrapped"), 1000);
}

TEST(GpuLookup, WithoutARegionTheDriversOwnFunctionsAreGiven) {
  const GpuTestRun run;
  const ProgramOutput ran =
      run.probe(std::string("lookups ") + kLookups + " v2 dlsym", "ASSAY_GPU_REGION=/nowhere");
  ASSERT_EQ(ran.status, 0) << ran.text;
  EXPECT_EQ(ran.values.at("wrong"), 0);
  EXPECT_EQ(ran.values.at("wrapped"), 0);
}

TEST(GpuLookup, MissingDriverStaysMissing) {
  const GpuTestRun run;
  const ProgramOutput ran = run.probe("no_driver", "LD_LIBRARY_PATH=/nowhere");
  ASSERT_EQ(ran.status, 0) << ran.text;
  EXPECT_EQ(ran.values.at("default"), 0);
  EXPECT_EQ(ran.values.at("error"), 1);
  EXPECT_EQ(ran.values.at("nccl"), 0);
  EXPECT_EQ(ran.values.at("blas"), 0);
  EXPECT_EQ(ran.values.at("error_after_success"), 0);
}

TEST(GpuLookup, WrappersReturnErrorsBeforeTheDriverIsLoaded) {
  const GpuTestRun run;
  const ProgramOutput ran = run.probe("weak_symbols");
  ASSERT_EQ(ran.status, 0) << ran.text;
  EXPECT_EQ(ran.values.at("launch"), 3);  // CUDA_ERROR_NOT_INITIALIZED
  EXPECT_EQ(ran.values.at("allocate"), 3);
  EXPECT_EQ(ran.values.at("reduce"), 3);  // ncclInternalError
  EXPECT_EQ(ran.values.at("launch_later"), 0);
  EXPECT_EQ(ran.values.at("allocate_later"), 0);
  EXPECT_EQ(run.total(GpuQuantity::kKernel).calls, 1);
  EXPECT_EQ(run.total(GpuQuantity::kAllocDevice).calls, 1);
}

TEST(GpuLookup, UnknownNamesAreRefusedByTheDriver) {
  const GpuTestRun run;
  const ProgramOutput ran = run.probe("other_names");
  const ProgramOutput bare =
      GpuTestRun::run_as("LD_LIBRARY_PATH=" ASSAY_FAKECUDA " " ASSAY_GPU_PROBE " other_names");
  ASSERT_EQ(ran.status, 0) << ran.text;
  EXPECT_EQ(ran.text, bare.text);
  EXPECT_EQ(ran.values.at("result"), 500);
}

TEST(GpuLookup, LinkedProgramsAreCountedAndRtldNextMeansTheCallersNext) {
  const GpuTestRun run;
  const ProgramOutput ran = run.run(ASSAY_GPU_LINKED " 12");
  ASSERT_EQ(ran.status, 0) << ran.text;
  EXPECT_EQ(ran.values.at("same"), 1);
  EXPECT_EQ(ran.values.at("next"), 2);
  EXPECT_EQ(run.total(GpuQuantity::kKernel).calls, 12);
  EXPECT_EQ(run.total(GpuQuantity::kAllocDevice), (wire::GpuTotals::Total{1, 100}));
  EXPECT_EQ(run.total(GpuQuantity::kFree), (wire::GpuTotals::Total{1, 100}));
  EXPECT_EQ(run.total(GpuQuantity::kNcclGroup).calls, 1);
  // 2·100·200·300 and, complex, 8·10·20·30; the third was refused.
  EXPECT_EQ(ran.values.at("refused"), 7);
  EXPECT_EQ(run.total(GpuQuantity::kMatmul), (wire::GpuTotals::Total{3, 12}));
  EXPECT_EQ(wire::sum_of(run.region()).flops_left[0], 48'000);
}

// The first launch finds the driver and the paced path at once.
TEST(GpuLookup, WhatIsLinkedCanBePacedFromTheFirstLaunch) {
  const GpuTestRun run;
  run.region().header.limits.share = 900;
  const std::string turns = std::string(run.path()) + ".turns";
  const ProgramOutput ran = run.run(ASSAY_GPU_LINKED " 12", "ASSAY_GPU_TURNS=" + turns);
  ::unlink(turns.c_str());
  EXPECT_EQ(ran.status, 0) << ran.text;
  EXPECT_EQ(run.total(GpuQuantity::kKernel).calls, 12);
}

TEST(GpuLookup, LinkedProgramsRunWithoutARegion) {
  const GpuTestRun run;
  const ProgramOutput ran = run.run(ASSAY_GPU_LINKED " 12", "ASSAY_GPU_REGION=");
  EXPECT_EQ(ran.status, 0) << ran.text;
  EXPECT_EQ(run.total(GpuQuantity::kKernel).calls, 0);
}

}  // namespace
}  // namespace assay::gpu
