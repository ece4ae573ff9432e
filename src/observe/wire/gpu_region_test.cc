#include "observe/wire/gpu_region.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <set>
#include <string>

namespace assay::wire {
namespace {

TEST(GpuRegionTest, IsMadeWholeAndKnownAgain) {
  const int file = ::memfd_create("region", MFD_CLOEXEC);
  ASSERT_TRUE(make_gpu_region(file));
  struct stat status {};
  ASSERT_EQ(::fstat(file, &status), 0);
  EXPECT_EQ(status.st_size, static_cast<off_t>(sizeof(GpuRegion)));
  EXPECT_GE(status.st_blocks * 512, static_cast<off_t>(sizeof(GpuRegion)));  // no holes
  GpuHeader header{};
  ASSERT_EQ(::pread(file, &header, sizeof header, 0), static_cast<ssize_t>(sizeof header));
  EXPECT_TRUE(is_valid(header, sizeof(GpuRegion)));
  EXPECT_FALSE(is_valid(header, sizeof(GpuRegion) - 1));
  header.version = kGpuVersion + 1;
  EXPECT_FALSE(is_valid(header, sizeof(GpuRegion)));
  ::close(file);
  EXPECT_FALSE(make_gpu_region(-1));
}

TEST(GpuRegionTest, SumsTheBlocksThatWereGivenOut) {
  const auto region = std::make_unique<GpuRegion>();
  for (std::size_t block = 0; block < 3; ++block) {
    region->blocks[block].counts[0].calls = 10 + block;
    region->blocks[block].counts[1].amount = 100;
  }
  region->header.next_block = 2;
  EXPECT_EQ(sum_of(*region)[GpuQuantity::kKernel].calls, 21U);
  EXPECT_EQ(sum_of(*region)[GpuQuantity::kKernelEx].amount, 200U);
  region->header.next_block = 1U << 31U;  // tickets keep counting when no blocks are left
  EXPECT_EQ(sum_of(*region)[GpuQuantity::kKernel].calls, 33U);
}

TEST(GpuRegionTest, FlopsOfManyBlocksAreWholeUnitsAndARest) {
  const auto region = std::make_unique<GpuRegion>();
  const auto matmul = static_cast<std::size_t>(GpuQuantity::kMatmul);
  for (std::size_t block = 0; block < 3; ++block) {
    region->blocks[block].counts[matmul].amount = std::uint64_t{1} << 61U;
    region->blocks[block].flops_left[0] = 700'000;
    region->blocks[block].flops_left[1] = 1;
  }
  region->header.next_block = 3;
  const GpuTotals totals = sum_of(*region);
  EXPECT_EQ(totals[GpuQuantity::kMatmul].amount, (std::uint64_t{3} << 61U) + 2);
  EXPECT_EQ(totals.flops_left[0], 100'000U);
  EXPECT_EQ(totals[GpuQuantity::kMatmulCaptured].amount, 0U);
  EXPECT_EQ(totals.flops_left[1], 3U);
}

TEST(GpuRegionTest, ADeviceHasOneLine) {
  const auto region = std::make_unique<GpuRegion>();
  EXPECT_EQ(claim_device(*region, 1, 2), 0U);
  EXPECT_EQ(claim_device(*region, 2, 1), 1U);
  EXPECT_EQ(claim_device(*region, 1, 2), 0U);
  EXPECT_EQ(claim_device(*region, 0, 0), 2U);  // a driver that reports no UUID
  for (std::size_t i = 3; i < kGpuDevices; ++i) EXPECT_EQ(claim_device(*region, i, i), i);
  EXPECT_EQ(claim_device(*region, 99, 99), kGpuDevices);
}

TEST(GpuRegionTest, NamesAreDifferent) {
  std::set<std::string> names;
  for (std::size_t i = 0; i < kGpuQuantities; ++i) names.insert(name_of(GpuQuantity(i)));
  EXPECT_EQ(names.size(), kGpuQuantities);
  EXPECT_STREQ(name_of(GpuQuantity::kNcclGroup), "nccl_groups");
  EXPECT_STREQ(name_of(GpuQuantity::kMatmul), "matmuls");
  EXPECT_STREQ(name_of(GpuQuantity::kRefused), "refused_allocs");
  EXPECT_STREQ(name_of(GpuOperation::kReceive), "receive");
  EXPECT_STREQ(nccl_type_name(9), "bf16");
  EXPECT_EQ(nccl_type_size(9), 2U);
  EXPECT_STREQ(nccl_type_name(200), "?");
  EXPECT_EQ(nccl_type_size(200), 0U);
}

}  // namespace
}  // namespace assay::wire
