// Ticks, by what must hold for any range: they cover it, are few, ascend, and are round.
#include "plot/ticks.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>

namespace assay::plot {
namespace {

using ::testing::ElementsAre;

constexpr double kRounding = 1e-8;  // a value on a tick may be a little past it

double any_magnitude() {
  return std::pow(10.0, *rc::gen::inRange(-145, 145)) * *rc::gen::inRange(1, 1'000'000) / 1e5;
}

// 1, 2 or 5 times a power of ten, judged by the decimal digits.
bool is_one_two_five(double value) {
  const std::string digits = fmt::format("{:.9e}", value);
  return digits.starts_with("1.000000000e") || digits.starts_with("2.000000000e") ||
         digits.starts_with("5.000000000e");
}

TEST(Ticks, OfFamiliarRanges) {
  EXPECT_THAT(ticks_over(0, 97, Scale::kLinear, 6), ElementsAre(0, 20, 40, 60, 80, 100));
  EXPECT_THAT(ticks_over(0.1, 0.3, Scale::kLinear, 6), ElementsAre(0.1, 0.15, 0.2, 0.25, 0.3));
  EXPECT_THAT(ticks_over(-3, 4, Scale::kLinear, 5), ElementsAre(-4, -2, 0, 2, 4));
  EXPECT_THAT(ticks_over(8, 128, Scale::kLog2, 8), ElementsAre(8, 16, 32, 64, 128));
  EXPECT_THAT(ticks_over(8, 4096, Scale::kLog2, 4), ElementsAre(8, 64, 512, 4096));
  EXPECT_THAT(ticks_over(812, 9000, Scale::kLog10, 8), ElementsAre(500, 1000, 2000, 5000, 10000));
  EXPECT_THAT(ticks_over(0.02, 30, Scale::kLog10, 6), ElementsAre(0.01, 0.1, 1, 10, 100));
  EXPECT_THAT(ticks_over(1, 1e9, Scale::kLog10, 4), ElementsAre(1, 1e3, 1e6, 1e9));
}

TEST(Ticks, OfNoRangeAtAll) {
  EXPECT_THAT(ticks_over(0, 0, Scale::kLinear, 3), ElementsAre(0, 0.5, 1));
  EXPECT_THAT(ticks_over(100, 100, Scale::kLog10, 8), ElementsAre(50, 100, 200));
  EXPECT_THAT(ticks_over(64, 64, Scale::kLog2, 8), ElementsAre(32, 64, 128));
  const auto ticks = ticks_over(7, 7, Scale::kLinear, 8);
  EXPECT_LT(ticks.front(), 7);
  EXPECT_GT(ticks.back(), 7);
}

RC_GTEST_PROP(TicksProperty, LinearOnesCoverAreFewAscendAndAreRound, ()) {
  const double sign_low = *rc::gen::element(-1.0, 0.0, 1.0);
  const double sign_high = *rc::gen::element(-1.0, 0.0, 1.0);
  const double magnitude = any_magnitude();
  double low = sign_low * magnitude;
  double high = sign_high * magnitude * *rc::gen::inRange(1, 100'000) / 1000;
  if (low > high) std::swap(low, high);
  const auto most = static_cast<std::size_t>(*rc::gen::inRange(3, 30));
  const std::vector<double> ticks = ticks_over(low, high, Scale::kLinear, most);

  RC_ASSERT(ticks.size() >= 2U && ticks.size() <= most);
  const double step = ticks[1] - ticks[0];
  RC_ASSERT(step > 0);
  RC_ASSERT(ticks.front() <= low + kRounding * step);
  RC_ASSERT(ticks.back() >= high - kRounding * step);
  // A range far from zero is known less exactly than its step.
  const double exactly = std::max(step, 1e-7 * std::max(std::abs(low), std::abs(high)));
  for (std::size_t i = 1; i < ticks.size(); ++i) {
    RC_ASSERT(std::abs(ticks[i] - ticks[i - 1] - step) < kRounding * exactly);
  }
  if (ticks.front() == 0) RC_ASSERT(is_one_two_five(step));
}

RC_GTEST_PROP(TicksProperty, LogarithmicOnesCoverAreFewAscendAndAreRound, ()) {
  const Scale scale = *rc::gen::element(Scale::kLog2, Scale::kLog10);
  double low = any_magnitude();
  double high = *rc::gen::arbitrary<bool>() ? any_magnitude() : low * *rc::gen::inRange(1, 5000);
  if (low > high) std::swap(low, high);
  const auto most = static_cast<std::size_t>(*rc::gen::inRange(3, 30));
  const std::vector<double> ticks = ticks_over(low, high, scale, most);

  RC_ASSERT(ticks.size() >= 2U && ticks.size() <= most);
  RC_ASSERT(ticks.front() <= low * (1 + kRounding));
  RC_ASSERT(ticks.back() >= high * (1 - kRounding));
  for (std::size_t i = 0; i < ticks.size(); ++i) {
    if (i > 0) RC_ASSERT(ticks[i] > ticks[i - 1]);
    int exponent = 0;
    const bool power_of_two = std::frexp(ticks[i], &exponent) == 0.5;
    const bool round = scale == Scale::kLog2 ? power_of_two : is_one_two_five(ticks[i]);
    RC_ASSERT(round);
  }
}

TEST(ShortNumber, IsWhatPeopleWrite) {
  EXPECT_EQ(short_number(0), "0");
  EXPECT_EQ(short_number(12'000), "12k");
  EXPECT_EQ(short_number(1.5e6), "1.5M");
  EXPECT_EQ(short_number(-2.5), "-2.5");
  EXPECT_EQ(short_number(0.25), "0.25");
  EXPECT_EQ(short_number(0.001), "0.001");
  EXPECT_EQ(short_number(0.0001), "1e-4");
  EXPECT_EQ(short_number(8.03e9), "8.03B");
  EXPECT_EQ(short_number(15e12), "15T");
  EXPECT_EQ(short_number(1e15), "1e15");
  EXPECT_EQ(short_number(1.25e290), "1.25e290");
}

TEST(ShortNumber, RoundingMayReachTheNextUnit) {
  EXPECT_EQ(short_number(999.4), "999");
  EXPECT_EQ(short_number(999.6), "1k");
  EXPECT_EQ(short_number(999'950), "1M");
  EXPECT_EQ(short_number(1234, 2), "1.2k");
}

TEST(TickLabels, AreAsShortAsIsUnambiguous) {
  EXPECT_THAT(tick_labels(std::vector<double>{0, 500, 1000, 1500}),
              ElementsAre("0", "500", "1k", "1.5k"));
  EXPECT_THAT(tick_labels(std::vector<double>{1000.2, 1000.4, 1000.6}),
              ElementsAre("1.0002k", "1.0004k", "1.0006k"));
}

TEST(TickLabels, PowersOfTwoAreWrittenOut) {
  EXPECT_THAT(tick_labels(std::vector<double>{512, 1024, 2048, 16384}),
              ElementsAre("512", "1,024", "2,048", "16,384"));
  EXPECT_THAT(tick_labels(std::vector<double>{std::ldexp(1, 30), std::ldexp(1, 31)}),
              ElementsAre("1.07B", "2.15B"));
}

}  // namespace
}  // namespace assay::plot
