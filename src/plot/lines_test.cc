// Lines, read back from the drawing: a point's position is derived from the axis labels.
#include "plot/lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "plot/testing/xml.h"

namespace assay::plot {
namespace {

using testing::Element;
using testing::elements_of;
using ::testing::HasSubstr;
using testing::those;

Element text_element(const std::vector<Element>& elements, std::string_view text) {
  for (const Element& element : those(elements, "text")) {
    if (element.text == text) return element;
  }
  ADD_FAILURE() << "no text '" << text << "'";
  return {};
}

std::size_t count_of(std::string_view text, char wanted) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), wanted));
}

Lines scaling() {
  return {.heading = {"Scaling"},
          .x = {.title = "GPUs", .scale = Scale::kLog2},
          .y = {.title = "tokens/s", .scale = Scale::kLog10},
          .series = {{"fsdp", {{8, 1e5}, {32, 3.5e5}, {16, 1.9e5}, {128, 1e6}}}},
          .reference = Reference{.name = "ideal", .per_x = 12'500}};
}

TEST(Lines, PointsLieAtTheirPositionsOnTheAxes) {
  const auto elements = elements_of(draw(scaling()));
  const auto circles = those(elements, "circle");
  ASSERT_EQ(circles.size(), 5U);  // and one beside the name
  const double x8 = text_element(elements, "8").number("x");
  const double x128 = text_element(elements, "128").number("x");
  const double y100k = text_element(elements, "100k").number("y") - 4;
  const double y1m = text_element(elements, "1M").number("y") - 4;
  const std::vector<LinePoint> sorted = {{8, 1e5}, {16, 1.9e5}, {32, 3.5e5}, {128, 1e6}};
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    EXPECT_NEAR(circles[i].number("cx"), x8 + (x128 - x8) * std::log2(sorted[i].x / 8) / 4, 0.03);
    EXPECT_NEAR(circles[i].number("cy"), y100k + (y1m - y100k) * std::log10(sorted[i].y / 1e5),
                0.03);
  }
}

TEST(Lines, TheReferenceMeetsWhatItIsTheIdealOf) {
  const auto elements = elements_of(draw(scaling()));
  const auto dashes = those(elements, "path", "dashes");
  ASSERT_EQ(dashes.size(), 1U);
  const Element first = those(elements, "circle").front();
  EXPECT_TRUE(dashes[0].attributes.at("d").starts_with("M" + first.attributes.at("cx") + " " +
                                                       first.attributes.at("cy") + "L"));
  text_element(elements, "ideal");
}

TEST(Lines, ABandGoesAroundAndBarsStandAlone) {
  Lines chart = scaling();
  chart.series = {{"a", {{8, 10, Interval{9, 12}}, {16, 20, Interval{25, 15}}, {32, 30}}}};
  chart.interval_name = "80 % interval";
  auto bands = those(elements_of(draw(chart)), "path", "band");
  ASSERT_EQ(bands.size(), 1U);
  EXPECT_EQ(count_of(bands[0].attributes.at("d"), 'L'), 3U);
  EXPECT_THAT(testing::description_of(draw(chart)), HasSubstr("20 at 16 (15 to 25), 30 at 32."));

  chart.interval_style = IntervalStyle::kErrorBars;
  const auto elements = elements_of(draw(chart));
  EXPECT_TRUE(those(elements, "path", "band").empty());
  EXPECT_EQ(those(elements, "path", "error").size(), 3U);  // and one beside the name
}

TEST(Lines, ABandOfOnePointIsAnErrorBar) {
  Lines chart = scaling();
  chart.series = {{"a", {{8, 10, Interval{9, 12}}}}};
  const auto elements = elements_of(draw(chart));
  EXPECT_TRUE(those(elements, "path", "band").empty());
  EXPECT_EQ(those(elements, "path", "error").size(), 1U);
}

TEST(Lines, BreakWhereAValueIsMissing) {
  const double nothing = std::nan("");
  Lines chart = scaling();
  chart.series = {
      {"a", {{8, 1}, {16, 2}, {32, nothing}, {64, 4}, {128, 5}, {nothing, 6}, {-1, 7}}}};
  const Drawing drawing = draw(chart);
  EXPECT_EQ(those(elements_of(drawing), "path", "line").size(), 2U);
  EXPECT_THAT(testing::description_of(drawing), HasSubstr("Left out: 3 values"));
}

TEST(Lines, OfManyPointsAFewAreMarked) {
  Lines chart{.heading = {"Loss"}, .series = {{"run", {}}}};
  for (int i = 0; i < 1000; ++i) chart.series[0].points.push_back({1.0 * i, std::sqrt(i)});
  const auto elements = elements_of(draw(chart));
  EXPECT_EQ(those(elements, "circle").size(), 9U);  // one beside the name
  EXPECT_THAT(testing::description_of(draw(chart)),
              HasSubstr("run: 1000 points, from 0 at 0 to 31.6 at 999."));
  EXPECT_EQ(those(elements, "path", "line").size(), 1U);
}

TEST(Lines, NamesDoNotTouchHoweverManyThereAre) {
  Lines chart;
  for (int i = 0; i < 50; ++i) chart.series.push_back({"same", {{0, 1}, {1, 2}}});
  double last = -1e9;
  std::vector<double> heights;
  for (const Element& element : those(elements_of(draw(chart)), "text")) {
    if (element.text == "same") heights.push_back(element.number("y"));
  }
  ASSERT_EQ(heights.size(), 50U);
  std::sort(heights.begin(), heights.end());
  for (const double height : heights) {
    EXPECT_GE(height - last, 12);
    last = height;
  }
  EXPECT_GT(heights.front(), 0);
}

}  // namespace
}  // namespace assay::plot
