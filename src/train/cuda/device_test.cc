#include "train/cuda/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace assay::train::cuda {
namespace {

using ::testing::HasSubstr;

TEST(GpuCapability, FromAmpereOnTrains) {
  const auto old = check_capability({"Tesla V100", 7, 0});
  ASSERT_FALSE(old.has_value());
  EXPECT_EQ(old.error().line(),
            "Tesla V100: its compute capability is 7.0; 8.0 or later (A100, RTX 30) is required; "
            "or use --device cpu");
  for (const GpuCapability& capability :
       {GpuCapability{"A100", 8, 0}, GpuCapability{"RTX 3090", 8, 6}, GpuCapability{"L40S", 8, 9},
        GpuCapability{"H200", 9, 0}, GpuCapability{"B200", 10, 0}}) {
    EXPECT_TRUE(check_capability(capability).has_value()) << capability.name;
  }
}

TEST(GpuCapability, WithoutFp8SaysSo) {
  const step::Numerics bf16 = step::numerics_of(spec::Precision::kBf16);
  const step::Numerics fp8 = step::numerics_of(spec::Precision::kFp8);
  for (const GpuCapability& capability :
       {GpuCapability{"A100", 8, 0}, GpuCapability{"RTX 3090", 8, 6}}) {
    EXPECT_TRUE(check_numerics(capability, bf16).has_value());
    const auto refused = check_numerics(capability, fp8);
    ASSERT_FALSE(refused.has_value());
    EXPECT_THAT(refused.error().line(), HasSubstr(capability.name + ": it has no fp8"));
  }
  for (const GpuCapability& capability :
       {GpuCapability{"L40S", 8, 9}, GpuCapability{"H200", 9, 0}, GpuCapability{"B200", 10, 0}}) {
    EXPECT_TRUE(check_numerics(capability, fp8).has_value()) << capability.name;
  }
}

}  // namespace
}  // namespace assay::train::cuda
