#include "train/cuda/card.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace assay::train::cuda {
namespace {

using ::testing::HasSubstr;

TEST(Card, FromAmpereOnTrains) {
  const auto old = check_card({"Tesla V100", 7, 0});
  ASSERT_FALSE(old.has_value());
  EXPECT_EQ(old.error().line(),
            "Tesla V100: its compute capability is 7.0; 8.0 or later (A100, RTX 30) is required; "
            "or use --device cpu");
  for (const Card& card : {Card{"A100", 8, 0}, Card{"RTX 3090", 8, 6}, Card{"L40S", 8, 9},
                           Card{"H200", 9, 0}, Card{"B200", 10, 0}}) {
    EXPECT_TRUE(check_card(card).has_value()) << card.name;
  }
}

TEST(Card, WithoutFp8SaysSo) {
  const step::Numerics bf16 = step::numerics_of(spec::Precision::kBf16);
  const step::Numerics fp8 = step::numerics_of(spec::Precision::kFp8);
  for (const Card& card : {Card{"A100", 8, 0}, Card{"RTX 3090", 8, 6}}) {
    EXPECT_TRUE(check_numerics(card, bf16).has_value());
    const auto refused = check_numerics(card, fp8);
    ASSERT_FALSE(refused.has_value());
    EXPECT_THAT(refused.error().line(), HasSubstr(card.name + ": it has no fp8"));
  }
  for (const Card& card : {Card{"L40S", 8, 9}, Card{"H200", 9, 0}, Card{"B200", 10, 0}}) {
    EXPECT_TRUE(check_numerics(card, fp8).has_value()) << card.name;
  }
}

}  // namespace
}  // namespace assay::train::cuda
