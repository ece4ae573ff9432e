// A region as processes of a run would fill it, seen from outside.
#include "share/region.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "share/usage_view.h"

namespace assay::share {
namespace {

using wire::GpuPriority;

constexpr std::uint64_t kGib = std::uint64_t{1} << 30U;

class RegionTest : public ::testing::Test {
 protected:
  const wire::GpuDevice& device(const wire::GpuUuid& uuid) {
    return region_->devices[wire::claim_device(*region_, uuid[0], uuid[1])];
  }
  std::unique_ptr<wire::GpuRegion> region_ = std::make_unique<wire::GpuRegion>();
  const wire::GpuUuid first_ = {1, 2};
  const wire::GpuUuid second_ = {3, 4};
};

TEST_F(RegionTest, LimitsHoldAsTheWireReadsThem) {
  LimitPlan plan;
  plan.all = {.bytes = 20 * kGib, .thousandths = 300, .borrow = true};
  plan.devices = {{first_, base::Bytes(64), {.bytes = kGib, .priority = GpuPriority::kHigh}}};
  ASSERT_TRUE(apply(plan, *region_));
  EXPECT_EQ(region_->header.generation.load(), 1U);
  EXPECT_EQ(wire::byte_limit(*region_, device(first_)), kGib);
  EXPECT_EQ(wire::byte_limit(*region_, device(second_)), 20 * kGib);
  EXPECT_EQ(device(first_).total.load(), 64U);
  const wire::GpuShare share = wire::share_of(*region_, device(first_));
  EXPECT_EQ(share.thousandths, 300U);
  EXPECT_EQ(share.priority, GpuPriority::kHigh);
  EXPECT_TRUE(share.borrow);
  // Values that are not given again stay.
  ASSERT_TRUE(apply({.all = {.bytes = wire::kGpuUnlimited, .borrow = false}}, *region_));
  EXPECT_EQ(region_->header.generation.load(), 2U);
  EXPECT_EQ(wire::byte_limit(*region_, device(second_)), 0U);
  EXPECT_EQ(wire::byte_limit(*region_, device(first_)), kGib);
  EXPECT_FALSE(wire::share_of(*region_, device(second_)).borrow);
  EXPECT_EQ(wire::share_of(*region_, device(second_)).thousandths, 300U);
  clear_limits(*region_);
  EXPECT_EQ(region_->header.generation.load(), 3U);
  EXPECT_EQ(wire::byte_limit(*region_, device(first_)), 0U);
  EXPECT_FALSE(wire::share_of(*region_, device(first_)).limited());
}

TEST_F(RegionTest, AFullRegionIsLeftAsItIs) {
  for (std::uint64_t i = 0; i < wire::kGpuDevices - 1; ++i) wire::claim_device(*region_, i, 99);
  LimitPlan plan;
  plan.all.bytes = 1;
  plan.devices = {{first_, {}, {.bytes = 1}}, {second_, {}, {.bytes = 2}}};
  EXPECT_FALSE(apply(plan, *region_));
  EXPECT_EQ(region_->header.limits.bytes.load(), 0U);
  EXPECT_EQ(region_->header.generation.load(), 0U);
  plan.devices.pop_back();
  EXPECT_TRUE(apply(plan, *region_));
}

TEST_F(RegionTest, WhatARunDidIsAddedUp) {
  region_->header.next_block = 2;
  const auto count = [&](std::size_t block, wire::GpuQuantity quantity, std::uint64_t calls,
                         std::uint64_t amount = 0) {
    wire::GpuCount& counter = region_->blocks[block].counts[static_cast<std::size_t>(quantity)];
    counter.calls = calls;
    counter.amount = amount;
  };
  count(0, wire::GpuQuantity::kKernel, 100);
  count(1, wire::GpuQuantity::kKernelEx, 10);
  count(1, wire::GpuQuantity::kCaptured, 30);
  count(1, wire::GpuQuantity::kGraph, 4, 24);
  count(1, wire::GpuQuantity::kGraphKernel, 20);
  count(0, wire::GpuQuantity::kCopyToHost, 2, 500);
  count(1, wire::GpuQuantity::kCopyToDevice, 2, 50);
  count(0, wire::GpuQuantity::kRefused, 3, 1000);
  count(0, wire::GpuQuantity::kMatmul, 6, 5);
  region_->blocks[1].flops_left[0] = 17;
  for (std::uint64_t i = 0; i < 2; ++i) {
    region_->collectives[i].key = i + 1;
    region_->collectives[i].calls = 5;
    region_->collectives[i].bytes = 1000;
  }
  const std::size_t line = wire::claim_device(*region_, first_[0], first_[1]);
  for (std::size_t slot = 0; slot < 3; ++slot) region_->slots[slot].used[line] = 10U << slot;
  const RunState state = state_of(*region_, {true, false, true});
  EXPECT_EQ(state.launches, 84U);  // 110 asked for, 30 into graphs, 4 graphs
  EXPECT_EQ(state.kernels, 100U);
  EXPECT_EQ(state.copied_bytes, 550U);
  EXPECT_EQ(state.refused, 3U);
  EXPECT_EQ(state.matmuls, 6U);
  EXPECT_DOUBLE_EQ(state.matmul_flops, 5'000'017);
  EXPECT_EQ(state.collectives, 10U);
  EXPECT_EQ(state.collective_bytes, 2000U);
  EXPECT_EQ(state.processes, 2U);
  ASSERT_EQ(state.devices.size(), 1U);
  EXPECT_EQ(state.devices[0].used, 50U);  // exited processes hold nothing
  region_->devices[line].used = 70;       // also before it is reclaimed
  EXPECT_EQ(state_of(*region_, {true, false, true}).devices[0].used, 50U);
  EXPECT_EQ(state_of(*region_, {}).devices[0].used, 0U);
  EXPECT_EQ(state_of(*region_, std::vector<bool>(5000, true)).processes, 5000U);
}

TEST(ViewTest, RatesAreDifferencesByTime) {
  UsageSample before{.monotonic_ns = 1'000'000'000};
  before.runs.push_back({.uid = "a", .id = {}, .title = "x", .gpu = RunState{}});
  before.runs[0].gpu->launches = 100;
  DeviceState device{.uuid = {1, 2}};
  device.share.thousandths = 300;
  device.busy_ns = 1'000'000'000;
  before.runs[0].gpu->devices = {device};
  before.runs[0].usage = ProcessUsage{.processes = 1, .cpu_seconds = 4, .memory_bytes = 1};
  UsageSample now = before;
  now.runs[0].usage->cpu_seconds = 7;
  now.monotonic_ns = 3'000'000'000;
  now.runs[0].gpu->launches = 500;
  now.runs[0].gpu->matmul_flops = 3e12;
  now.runs[0].gpu->devices[0].busy_ns += 600'000'000;
  now.runs[0].gpu->devices[0].waited_ns += 1'000'000'000;
  now.runs.push_back({.uid = "b", .id = {}, .title = "y", .gpu = RunState{}});
  now.gpus.push_back({.index = 3, .uuid = wire::uuid_text({1, 2}), .memory = base::Bytes(64)});
  now.activities.emplace_back();
  const UsageView view = usage_view(&before, now);
  EXPECT_DOUBLE_EQ(view.seconds, 2);
  ASSERT_EQ(view.runs.size(), 2U);
  EXPECT_DOUBLE_EQ(view.runs[0].rates->launches, 200);
  EXPECT_DOUBLE_EQ(view.runs[0].rates->matmul_flops, 1.5e12);
  EXPECT_DOUBLE_EQ(*view.runs[0].devices[0].busy_percent, 30);
  EXPECT_DOUBLE_EQ(*view.runs[0].devices[0].waited_percent, 50);
  EXPECT_EQ(view.runs[0].devices[0].gpu, "3");
  EXPECT_EQ(view.runs[0].devices[0].state.total, 64U);
  EXPECT_FALSE(view.runs[1].rates);  // it was not there before
  EXPECT_DOUBLE_EQ(*view.runs[0].cpu_percent, 150);
  EXPECT_FALSE(usage_view(nullptr, now).runs[0].rates);
  now.runs[0].gpu->launches = 50;  // another region under the same name
  EXPECT_DOUBLE_EQ(usage_view(&before, now).runs[0].rates->launches, 0);
  const base::Json json = usage_json(view);
  EXPECT_EQ(json["runs"][0]["devices"][0]["compute_limit_percent"], 30.0);
  EXPECT_TRUE(json["runs"][1]["launches_per_s"].is_null());
  EXPECT_EQ(json["runs"][0]["cpu_percent"], 150.0);
  EXPECT_TRUE(json["runs"][1]["cpu_percent"].is_null());
  EXPECT_TRUE(json["runs"][1]["step"].is_null());
  EXPECT_TRUE(json["gpus"][0]["tensor_percent"].is_null());
}

}  // namespace
}  // namespace assay::share
