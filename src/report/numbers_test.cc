#include "report/numbers.h"

#include <gtest/gtest.h>

#include <cmath>

namespace assay::report {
namespace {

TEST(Numbers, AmountsHaveTheirUnit) {
  EXPECT_EQ(amount(0.0123, "s"), "12.3 ms");
  EXPECT_EQ(amount(4.1 * (1 << 30), "bytes"), "4.10 GiB");
  EXPECT_EQ(amount(0.412, "fraction"), "41.2 %");
  EXPECT_EQ(amount(9120, "tokens/s"), "9,120 tokens/s");
  EXPECT_EQ(amount(12'800, "W"), "12,800 W");
  EXPECT_EQ(amount(5.4e6, "J"), "5.4 MJ");
  EXPECT_EQ(amount(3, ""), "3");
}

TEST(Numbers, LimitsHaveNoDigitsOfMeasurements) {
  EXPECT_EQ(limit_text(base::Seconds(600)), "10 min");
  EXPECT_EQ(limit_text(base::Seconds(5400)), "1.5 h");
  EXPECT_EQ(limit_text(base::Seconds(0.5)), "500 ms");
}

TEST(Numbers, PercentagesHaveRatios) {
  EXPECT_EQ(ratio_text(820, true), "9.2 × slower");
  EXPECT_EQ(ratio_text(-89.13, true), "9.2 × faster");
  EXPECT_EQ(ratio_text(2, true), "1.020 × slower");
  EXPECT_EQ(ratio_text(50, false), "1.50 × as much");
  EXPECT_EQ(ratio_text(-99.9, false), "1,000 × less");
  EXPECT_EQ(ratio_text(-100, true), "");
}

}  // namespace
}  // namespace assay::report
