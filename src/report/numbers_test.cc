#include "report/numbers.h"

#include <gtest/gtest.h>

#include <cmath>

namespace assay::report {
namespace {

TEST(Numbers, FiguresAreWhatPeopleWrite) {
  EXPECT_EQ(figure(0), "0");
  EXPECT_EQ(figure(0.1 + 0.2), "0.3");
  EXPECT_EQ(figure(2.0 / 3), "0.6667");
  EXPECT_EQ(figure(-12.3456), "-12.35");
  EXPECT_EQ(figure(999.94), "999.9");
  EXPECT_EQ(figure(999.96), "1,000");
  EXPECT_EQ(figure(12'800), "12,800");
  EXPECT_EQ(figure(1'234'567.8), "1,234,568");
  EXPECT_EQ(figure(0.0003), "0.0003");
  EXPECT_EQ(figure(1.25e-7), "1.25e-7");
  EXPECT_EQ(figure(2e18), "2e18");
  EXPECT_EQ(figure(std::nan("")), "—");
}

TEST(Numbers, AmountsHaveTheirUnit) {
  EXPECT_EQ(amount(0.0123, "s"), "12.3 ms");
  EXPECT_EQ(amount(4.1 * (1 << 30), "bytes"), "4.10 GiB");
  EXPECT_EQ(amount(0.412, "fraction"), "41.2 %");
  EXPECT_EQ(amount(9120, "tokens/s"), "9,120 tokens/s");
  EXPECT_EQ(amount(12'800, "W"), "12,800 W");
  EXPECT_EQ(amount(5.4e6, "J"), "5.4 MJ");
  EXPECT_EQ(amount(3, ""), "3");
}

TEST(Numbers, PercentagesHaveRatios) {
  EXPECT_EQ(signed_percent(2), "+2.00 %");
  EXPECT_EQ(signed_percent(12'345.6), "+12,346 %");
  EXPECT_EQ(ratio_text(820, true), "9.2 × slower");
  EXPECT_EQ(ratio_text(-89.13, true), "9.2 × faster");
  EXPECT_EQ(ratio_text(2, true), "1.020 × slower");
  EXPECT_EQ(ratio_text(50, false), "1.50 × as much");
  EXPECT_EQ(ratio_text(-99.9, false), "1,000 × less");
  EXPECT_EQ(ratio_text(-100, true), "");
}

}  // namespace
}  // namespace assay::report
