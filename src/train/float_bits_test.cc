#include "train/float_bits.h"
#include "train/testing/join_master.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

namespace assay::train {
namespace {

RC_GTEST_PROP(SplitMaster, EveryFp32NumberComesBack, (std::uint32_t bits)) {
  const SplitMaster halves = split_master(std::bit_cast<float>(bits));
  RC_ASSERT(std::bit_cast<std::uint32_t>(join_master(halves)) == bits);
}

RC_GTEST_PROP(SplitMaster, TheHighHalfIsTheNearest, (std::int16_t numerator, std::uint8_t shift)) {
  const float value = std::ldexp(static_cast<float>(numerator) + 0.4999F, -(shift % 40));
  const float high = join_master({split_master(value).high, 0});
  // Half a unit in the last place of bf16.
  RC_ASSERT(std::abs(high - value) <= std::ldexp(std::abs(value), -8));
}

TEST(SplitMaster, ATieMovesAwayFromZero) {
  EXPECT_EQ(split_master(std::bit_cast<float>(0x3f808000U)).high, 0x3f81);
  EXPECT_EQ(split_master(std::bit_cast<float>(0xbf808000U)).high, 0xbf81);
  EXPECT_EQ(split_master(std::bit_cast<float>(0x3f807fffU)).high, 0x3f80);
}

}  // namespace
}  // namespace assay::train
