#include "observe/collect/gpu_count.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace assay::collect {
namespace {

namespace fs = std::filesystem;

class GpuCountTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "gpu-count-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }
  [[nodiscard]] std::string uid() const { return "test-" + folder_.filename().string(); }

  fs::path folder_;
};

TEST_F(GpuCountTest, IsWantedWhereTheLoaderFindsADriverOrWhereItIsSaid) {
  EXPECT_TRUE(gpu_wanted({"ASSAY_GPU=1"}));
  EXPECT_FALSE(gpu_wanted({"ASSAY_GPU=0", "LD_LIBRARY_PATH=" + folder_.string()}));
  std::ofstream(folder_ / "libcuda.so.1") << "x";
  EXPECT_TRUE(gpu_wanted({"LD_LIBRARY_PATH=/nowhere::" + folder_.string()}));
  EXPECT_FALSE(gpu_wanted({"ASSAY_GPU=0", "LD_LIBRARY_PATH=" + folder_.string()}));
}

TEST_F(GpuCountTest, WhatProcessesCountedIsSummedUpAndFoundAgain) {
  auto count = GpuCount::make(uid(), folder_);
  ASSERT_TRUE(count);
  std::vector<std::string> environment = {"A=1", "ASSAY_GPU_REGION=/old"};
  const bool added = count->add_to(environment);
  EXPECT_EQ(added, environment.back().starts_with("ASSAY_GPU_REGION=/") &&
                       environment.back() != "ASSAY_GPU_REGION=/old");
  EXPECT_FALSE(GpuCount::make(uid(), "/nowhere"));  // it is there already
  auto found = GpuCount::find(uid(), folder_);
  ASSERT_TRUE(found);
  const GpuReport report = found->report();
  EXPECT_EQ(report.totals[wire::GpuQuantity::kKernel].calls, 0U);
  EXPECT_TRUE(report.collectives.empty());
  EXPECT_TRUE(report.memory.empty());
  count->remove();
  EXPECT_FALSE(GpuCount::find(uid(), folder_));
}

}  // namespace
}  // namespace assay::collect
