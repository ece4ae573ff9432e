#include "plot/axis.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>

namespace assay::plot {
namespace {

using ::testing::ElementsAre;

Extent extent_of(std::initializer_list<double> values) {
  Extent extent;
  for (const double value : values) extent.add(value);
  return extent;
}

TEST(Axis, ShowsWhatHasAPlace) {
  const Axis linear;
  const Axis logarithmic{.scale = Scale::kLog2};
  EXPECT_TRUE(linear.shows(0) && linear.shows(-1) && linear.shows(1e150));
  EXPECT_TRUE(logarithmic.shows(1e-150));
  for (const double value : {std::nan(""), std::numeric_limits<double>::infinity(), 1e151}) {
    EXPECT_FALSE(linear.shows(value) || logarithmic.shows(value)) << value;
  }
  EXPECT_FALSE(logarithmic.shows(0) || logarithmic.shows(-1));
}

TEST(AxisLine, LaysValuesEvenlyToTheEye) {
  AxisLine linear({}, extent_of({0, 100}), 6);
  linear.lay(50, 250);
  EXPECT_DOUBLE_EQ(linear.at(0), 50);
  EXPECT_DOUBLE_EQ(linear.at(25), 100);
  AxisLine logarithmic({.scale = Scale::kLog2}, extent_of({1, 16}), 6);
  logarithmic.lay(400, 0);  // as a vertical one is
  EXPECT_DOUBLE_EQ(logarithmic.at(1), 400);
  EXPECT_DOUBLE_EQ(logarithmic.at(4), 200);
}

TEST(AxisLine, EndsSoonAfterItsValues) {
  AxisLine line({.from_zero = true}, extent_of({4009, 3288}), 8);
  line.lay(0, 1000);
  EXPECT_THAT(line.labels(), ElementsAre("0", "1k", "2k", "3k", "4k"));
  EXPECT_GT(line.at(4009), 975);
  AxisLine close({.from_zero = true}, extent_of({4900}), 8);
  close.lay(0, 1000);
  EXPECT_THAT(close.labels(), ElementsAre("0", "1k", "2k", "3k", "4k", "5k"));
  EXPECT_DOUBLE_EQ(close.at(4900), 980);
}

TEST(AxisLine, WithoutValuesIsFromZeroOrOne) {
  EXPECT_EQ(AxisLine({}, {}, 6).ticks().front(), 0);
  EXPECT_EQ(AxisLine({.scale = Scale::kLog10}, {}, 6).ticks().front(), 1);
}

TEST(AxisLine, TicksCanHaveAFormatOfTheirOwn) {
  const Axis hours{.tick_format = [](double value) { return fmt::format("{:.1f} h", value); }};
  EXPECT_THAT(AxisLine(hours, extent_of({0, 1}), 3).labels(),
              ElementsAre("0.0 h", "0.5 h", "1.0 h"));
}

RC_GTEST_PROP(AxisProperty, ValuesLieBetweenTheEndsInTheirOrder, ()) {
  const Axis axis{.scale = *rc::gen::element(Scale::kLinear, Scale::kLog2, Scale::kLog10),
                  .from_zero = *rc::gen::arbitrary<bool>()};
  const auto values = *rc::gen::nonEmpty(rc::gen::container<std::vector<double>>(
      rc::gen::map(rc::gen::pair(rc::gen::inRange(-147, 147), rc::gen::inRange(1, 1000)),
                   [](const auto& p) { return std::pow(10.0, p.first) * p.second; })));
  Extent extent;
  for (const double value : values) extent.add(value);
  AxisLine line(axis, extent, static_cast<std::size_t>(*rc::gen::inRange(1, 20)));
  line.lay(0, 1000);
  for (const double value : values) {
    RC_ASSERT(line.at(value) >= -1e-6 && line.at(value) <= 1000 + 1e-6);
    RC_ASSERT(line.at(extent.low) <= line.at(value) && line.at(value) <= line.at(extent.high));
  }
  for (const double tick : line.ticks()) {
    RC_ASSERT(line.at(tick) >= -1e-6 && line.at(tick) <= 1000 + 1e-6);
  }
}

TEST(Axis, OfCountsHasNoTickBetweenTwo) {
  for (double most = 1; most <= 12; ++most) {
    const AxisLine line({.title = "step", .whole = true}, {.low = 1, .high = most}, 9);
    ASSERT_GE(line.ticks().size(), 2U);
    for (const double tick : line.ticks()) EXPECT_EQ(tick, std::round(tick)) << most;
    EXPECT_LE(line.shown().low, 1);
    EXPECT_GE(line.shown().high, most);
  }
}

}  // namespace
}  // namespace assay::plot
