// The activity of fake GPUs.
#include "machine/gpu_monitor.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <stdlib.h>

namespace assay::machine {
namespace {

class GpuMonitorTest : public ::testing::Test {
 protected:
  void SetUp() override { fake_ = ::dlopen(FAKE_NVML, RTLD_NOW | RTLD_LOCAL); }
  void TearDown() override {
    for (const char* left : {"fake_nvml_open_sessions", "fake_nvml_samples_alive"}) {
      const auto count = reinterpret_cast<int (*)()>(::dlsym(fake_, left));
      ASSERT_NE(count, nullptr);
      EXPECT_EQ(count(), 0) << left;
    }
    ::dlclose(fake_);
  }
  static base::Result<GpuMonitor> open(const char* scenario, const char* library = FAKE_NVML) {
    ::setenv("FAKE_NVML", scenario, 1);
    return GpuMonitor::open(library);
  }
  void* fake_ = nullptr;
};

TEST_F(GpuMonitorTest, CountersCoverTheTimeBetweenTwoSamples) {
  auto watch = open("nvswitch");
  ASSERT_TRUE(watch);
  ASSERT_EQ(watch->gpus().size(), 8U);
  EXPECT_EQ(watch->gpus()[3].uuid, "GPU-00000000-0000-0000-0000-000000000003");
  EXPECT_EQ(watch->gpus()[3].memory, base::Bytes(150'754'820'096));
  EXPECT_EQ(short_name(watch->gpus()[3]), "3");
  EXPECT_FALSE(watch->gpus()[3].sliced);
  const GpuActivity first = watch->sample()[3];
  EXPECT_EQ(first.busy_percent, 53);
  EXPECT_EQ(first.watts, 403);
  EXPECT_EQ(first.clock_mhz, 1980);
  EXPECT_FALSE(first.tensor_percent);  // nothing to compare with yet
  for (int again = 0; again < 3; ++again) {
    const GpuActivity second = watch->sample()[3];
    EXPECT_DOUBLE_EQ(*second.sm_percent, 2.003);
    EXPECT_DOUBLE_EQ(*second.tensor_percent, 5.003);
    EXPECT_DOUBLE_EQ(*second.dram_percent, 10.003);
    EXPECT_DOUBLE_EQ(second.pcie_sent->count(), 20.003 * 1024 * 1024);
    EXPECT_DOUBLE_EQ(second.nvlink_received->count(), 60.003 * 1024 * 1024);
    EXPECT_FALSE(second.nvlink_sent);  // this driver does not say
  }
}

TEST_F(GpuMonitorTest, SlicesAreGpusOfTheirOwn) {
  auto watch = open("slices");
  ASSERT_TRUE(watch);
  ASSERT_EQ(watch->gpus().size(), 10U);
  EXPECT_TRUE(watch->gpus()[1].sliced);
  const GpuName& slice = watch->gpus()[3];
  EXPECT_EQ(slice.uuid, "MIG-00000000-0000-0000-0000-000000000102");
  EXPECT_EQ(slice.old_id, "MIG-GPU-00000000-0000-0000-0000-000000000001/5/0");
  EXPECT_EQ(short_name(slice), "1.2");
  EXPECT_EQ(short_name(watch->gpus()[4]), "2");
  watch->sample();
  const auto activities = watch->sample();
  ASSERT_EQ(activities.size(), 10U);
  EXPECT_DOUBLE_EQ(*activities[3].sm_percent, 3.005);  // of instance 5 of card 1
  EXPECT_FALSE(activities[3].watts);
  EXPECT_FALSE(activities[1].sm_percent);
  EXPECT_TRUE(activities[1].watts);
}

TEST_F(GpuMonitorTest, OlderCardsReportLess) {
  auto watch = open("pairs");
  ASSERT_TRUE(watch);
  watch->sample();
  const GpuActivity activity = watch->sample()[0];
  EXPECT_FALSE(activity.tensor_percent);
  EXPECT_EQ(activity.pcie_received, base::BytesPerSecond(2e6));
  auto bare = open("nvswitch", FAKE_NVML_BARE);
  ASSERT_TRUE(bare);
  EXPECT_EQ(bare->gpus()[0].uuid, "");
  EXPECT_FALSE(bare->sample()[0].memory_used);
}

TEST_F(GpuMonitorTest, InvalidReadingsAreDropped) {
  EXPECT_FALSE(open("driver_not_loaded"));
  EXPECT_FALSE(open("nvswitch", "/nonexistent"));
  EXPECT_FALSE(open("no_count"));
  EXPECT_TRUE(open("none")->gpus().empty());
  EXPECT_EQ(open("lost")->gpus().size(), 7U);
  for (const char* scenario : {"errors", "garbage"}) {
    auto watch = open(scenario);
    ASSERT_TRUE(watch);
    watch->sample();
    for (const GpuActivity& activity : watch->sample()) {
      EXPECT_FALSE(activity.busy_percent || activity.watts || activity.clock_mhz) << scenario;
      EXPECT_FALSE(activity.sm_percent || activity.pcie_sent || activity.nvlink_received)
          << scenario;
    }
  }
}

}  // namespace
}  // namespace assay::machine
