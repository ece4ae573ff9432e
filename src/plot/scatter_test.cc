// Points and their front, read back from the drawing.
#include "plot/scatter.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "plot/testing/xml.h"

namespace assay::plot {
namespace {

using ::testing::Contains;
using testing::Element;
using testing::elements_of;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::those;

std::vector<std::string> texts_in(const std::vector<Element>& elements) {
  std::vector<std::string> texts;
  for (const Element& element : those(elements, "text")) texts.push_back(element.text);
  return texts;
}

Scatter offers() {
  return {.heading = {"Offers"},
          .x = {.title = "cost, $"},
          .y = {.title = "hours"},
          .points = {{.x = 10, .y = 100, .label = "slow"},
                     {.x = 50, .y = 40, .label = "medium"},
                     {.x = 90, .y = 10, .label = "fast"},
                     {.x = 80, .y = 80, .label = "neither"}},
          .front_name = "cheapest for its time"};
}

TEST(Scatter, PointsLieAtTheirPositionsOnTheAxes) {
  const auto elements = elements_of(draw(offers()));
  double x20 = 0;
  double x80 = 0;
  double y20 = 0;
  double y80 = 0;
  for (const Element& text : those(elements, "text", "small")) {
    const bool of_x = text.has_class("middle");
    if (text.text == "20") (of_x ? x20 : y20) = of_x ? text.number("x") : text.number("y") - 4;
    if (text.text == "80") (of_x ? x80 : y80) = of_x ? text.number("x") : text.number("y") - 4;
  }
  const auto circles = those(elements, "circle");
  ASSERT_EQ(circles.size(), 4U);
  const std::vector<ScatterPoint> drawn = {{80, 80}, {10, 100}, {50, 40}, {90, 10}};  // front last
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    EXPECT_NEAR(circles[i].number("cx"), x20 + (x80 - x20) * (drawn[i].x - 20) / 60, 0.03);
    EXPECT_NEAR(circles[i].number("cy"), y20 + (y80 - y20) * (drawn[i].y - 20) / 60, 0.03);
  }
}

TEST(Scatter, TheFrontGoesInStepsThroughItsPoints) {
  const auto elements = elements_of(draw(offers()));
  const auto circles = those(elements, "circle");
  const auto front = those(elements, "path", "front");
  ASSERT_EQ(front.size(), 1U);
  const auto at = [&](std::size_t i, const char* name) { return circles[i].attributes.at(name); };
  EXPECT_EQ(front[0].attributes.at("d"),
            fmt::format("M{} {}H{}V{}H{}V{}", at(1, "cx"), at(1, "cy"), at(2, "cx"), at(2, "cy"),
                        at(3, "cx"), at(3, "cy")));
  EXPECT_THAT(
      testing::description_of(draw(offers())),
      HasSubstr("cheapest for its time: slow: 10 and 100; medium: 50 and 40; fast: 90 and 10."));
}

TEST(Scatter, OnlyTheFrontIsLabelledByDefault) {
  Scatter chart = offers();
  const auto texts = texts_in(elements_of(draw(chart)));
  EXPECT_THAT(texts, Contains("slow"));
  EXPECT_THAT(texts, Contains("fast"));
  EXPECT_THAT(texts, Not(Contains("neither")));
  chart.label_all = true;
  EXPECT_THAT(texts_in(elements_of(draw(chart))), Contains("neither"));
  chart.label_all = false;
  chart.front_name.clear();
  EXPECT_THAT(texts_in(elements_of(draw(chart))), Contains("neither"));
}

// Wherever it is, and however many others there are.
TEST(Scatter, WhatIsMarkedHasARingAndALabel) {
  Scatter chart = offers();
  chart.points.assign(200, {.x = 50, .y = 50, .label = "one of many"});
  chart.points.push_back({.x = 50.1, .y = 50.1, .label = "this one", .marked = true});
  const auto elements = elements_of(draw(chart));
  EXPECT_THAT(texts_in(elements), Contains("this one"));
  const auto rings = those(elements, "circle", "stroke-ink");
  ASSERT_EQ(rings.size(), 1U);
  EXPECT_GT(rings[0].number("r"), 5);
}

TEST(Scatter, LabelsThatWouldCollideAreLeftOut) {
  Scatter chart = offers();
  chart.front_name.clear();
  chart.points.assign(200, {.x = 1, .y = 1, .label = "the very same place"});
  std::size_t labels = 0;
  for (const std::string& text : texts_in(elements_of(draw(chart)))) {
    if (text == "the very same place") ++labels;
  }
  EXPECT_GE(labels, 1U);
  EXPECT_LE(labels, 8U);
}

// Where there is little room: the ends, and what is marked.
TEST(Scatter, OfALongFrontNarrowDrawingsLabelItsEnds) {
  Scatter chart = offers();
  chart.points.clear();
  for (int i = 1; i <= 9; ++i) {
    chart.points.push_back({.x = 10.0 * i,
                            .y = 100.0 - 10 * i,
                            .label = fmt::format("offer {}", i),
                            .marked = i == 5});
  }
  std::vector<std::string> labels;
  for (const std::string& text : texts_in(elements_of(draw(chart, kNarrowWidth)))) {
    if (text.starts_with("offer")) labels.push_back(text);
  }
  // The first is at the edge, where there may be no place.
  EXPECT_THAT(labels, Contains("offer 5"));
  EXPECT_THAT(labels, ::testing::IsSubsetOf({"offer 1", "offer 5", "offer 9"}));
}

// Others all around, none of which may be covered.
TEST(Scatter, WhatIsMarkedIsNamedInACrowdToo) {
  Scatter chart = offers();
  chart.points.clear();
  for (int i = -4; i <= 4; ++i)
    for (int j = -2; j <= 2; ++j) chart.points.push_back({.x = 50.0 + 5 * i, .y = 50.0 + 6 * j});
  chart.points.push_back({.x = 10, .y = 100});
  chart.points.push_back({.x = 90, .y = 1});
  chart.points.push_back({.x = 50, .y = 50, .label = "this one of many", .marked = true});
  EXPECT_THAT(texts_in(elements_of(draw(chart, kNarrowWidth))), Contains("this one of many"));
}

TEST(Scatter, GroupsHaveShapesAndErrorBarsGoBothWays) {
  Scatter chart = offers();
  chart.groups = {"on demand", "spot"};
  chart.points[1].group = 1;
  chart.points[1].x_interval = Interval{40, 60};
  chart.points[1].y_interval = Interval{30, 50};
  const auto elements = elements_of(draw(chart));
  EXPECT_EQ(those(elements, "polygon").size(), 2U);  // and in the legend
  EXPECT_EQ(those(elements, "path", "error").size(), 2U);
}

TEST(Scatter, WhatALogarithmicAxisCannotShowIsCounted) {
  Scatter chart = offers();
  chart.x.scale = Scale::kLog10;
  chart.points.push_back({.x = 0, .y = 1});
  chart.points.push_back({.x = 1, .y = std::nan("")});
  chart.points.push_back({.x = 1, .y = 2, .x_interval = Interval{-1, 2}});
  EXPECT_THAT(testing::description_of(draw(chart)), HasSubstr("Left out: 3 values"));
}

}  // namespace
}  // namespace assay::plot
