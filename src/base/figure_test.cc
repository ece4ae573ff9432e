#include "base/figure.h"

#include <gtest/gtest.h>

#include <cmath>

namespace assay::base {
namespace {

TEST(Figure, IsWhatPeopleWrite) {
  EXPECT_EQ(figure(0), "0");
  EXPECT_EQ(figure(0.1 + 0.2), "0.3");
  EXPECT_EQ(figure(2.0 / 3), "0.6667");
  EXPECT_EQ(figure(-12.3456), "-12.35");
  EXPECT_EQ(figure(999.94), "999.9");
  EXPECT_EQ(figure(999.96), "1,000");
  EXPECT_EQ(figure(12'800), "12,800");
  EXPECT_EQ(figure(1'234'567.8), "1,234,568");
  EXPECT_EQ(figure(5.2e-5), "0.000052");
  EXPECT_EQ(figure(1.25e-7), "1.25e-7");
  EXPECT_EQ(figure(2e18), "2e18");
  EXPECT_EQ(figure(std::nan("")), "—");
  EXPECT_EQ(signed_figure(3), "+3");
  EXPECT_EQ(signed_figure(-3), "-3");
}

TEST(Figure, KeepsEveryDigitWhereAsked) {
  EXPECT_EQ(exact_figure(0), "0");
  EXPECT_EQ(exact_figure(1411.6), "1,411.6");
  EXPECT_EQ(exact_figure(-6495.1), "-6,495.1");
  EXPECT_EQ(exact_figure(692.34), "692.34");
  EXPECT_EQ(exact_figure(41'000), "41,000");
  EXPECT_EQ(exact_figure(5.2e-5), "0.000052");
  EXPECT_EQ(exact_figure(2.5e-9), "2.5e-9");
  EXPECT_EQ(exact_figure(3e20), "3e20");
}

TEST(Figure, PercentagesHaveASign) {
  EXPECT_EQ(signed_percent(2), "+2.00 %");
  EXPECT_EQ(signed_percent(-0.051), "-0.05 %");
  EXPECT_EQ(signed_percent(12'345.6), "+12,346 %");
}

}  // namespace
}  // namespace assay::base
