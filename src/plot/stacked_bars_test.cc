// Bars, read back from the drawing.
#include "plot/stacked_bars.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "plot/testing/xml.h"

namespace assay::plot {
namespace {

using ::testing::Contains;
using testing::Element;
using testing::elements_of;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::those;

constexpr double kPixel = 0.011;  // coordinates are rounded to hundredths, ends and widths each

std::vector<std::string> texts_of(const std::vector<Element>& elements) {
  std::vector<std::string> texts;
  for (const Element& element : those(elements, "text")) texts.push_back(element.text);
  return texts;
}

// Areas that stand for values: those of the legend have no title.
std::vector<Element> segments_of(const std::vector<Element>& elements) {
  std::vector<Element> segments;
  for (const Element& area : those(elements, "rect", "area")) {
    if (area.parents.back() == "g") segments.push_back(area);
  }
  return segments;
}

StackedBars two_bars() {
  return {.heading = {"Where a step goes", "measured"},
          .value = {.title = "ms per step",
                    .format = [](double value) { return fmt::format("{:.0f} ms", value); }},
          .parts = {"forward", "backward", "exposed"},
          .bars = {{"fsdp", {100, 200, 100}}, {"tp", {100, 200, 2}}}};
}

TEST(StackedBars, WidthsAreProportionalFromACommonZero) {
  const auto segments = segments_of(elements_of(draw(two_bars())));
  ASSERT_EQ(segments.size(), 6U);
  const double unit = segments[0].number("width") / 100;
  const double zero = segments[0].number("x");
  const std::vector<double> values = {100, 200, 100, 100, 200, 2};
  const std::vector<double> starts = {0, 100, 300, 0, 100, 300};
  for (std::size_t i = 0; i < segments.size(); ++i) {
    EXPECT_NEAR(segments[i].number("width"), values[i] * unit, 4 * kPixel) << i;
    EXPECT_NEAR(segments[i].number("x"), zero + starts[i] * unit, 4 * kPixel) << i;
  }
  EXPECT_LT(segments[0].number("y"), segments[3].number("y"));
}

TEST(StackedBars, LabelsStandWhereTheyFit) {
  const auto texts = texts_of(elements_of(draw(two_bars())));
  EXPECT_THAT(texts, Contains("200 ms · 50 %"));
  EXPECT_THAT(texts, Contains("400 ms"));  // the sum
  EXPECT_THAT(texts, Contains("302 ms"));
  EXPECT_THAT(texts, Contains("exposed"));    // the legend
  EXPECT_THAT(texts, Not(Contains("<1 %")));  // two pixels wide
  EXPECT_THAT(texts, Contains("ms per step"));
  EXPECT_THAT(texts, Contains("measured"));
}

TEST(StackedBars, TheDescriptionHasTheData) {
  EXPECT_EQ(testing::description_of(draw(two_bars())),
            "Horizontal stacked bars of ms per step. fsdp: 400 ms in all, of which forward 100 ms "
            "(25 %), backward 200 ms (50 %), exposed 100 ms (25 %). tp: 302 ms in all, of which "
            "forward 100 ms (33 %), backward 200 ms (66 %), exposed 2 ms (<1 %).");
}

TEST(StackedBars, NoPartIsKnownByColourAlone) {
  StackedBars chart{.heading = {"many"}};
  for (int i = 0; i < 32; ++i) chart.parts.push_back(fmt::format("part {}", i));
  std::vector<std::string> looks;
  const auto elements = elements_of(draw(chart));
  for (std::size_t i = 0; i < elements.size(); ++i) {
    if (elements[i].name != "rect" || !elements[i].has_class("area")) continue;
    const Element& next = elements[i + 1];  // its hatching, moved to the origin's place
    std::string lines;
    if (next.name == "path") {
      const std::string path = next.attributes.at("d");
      const auto first = path.substr(0, path.find('M', 1));
      double x1 = 0;
      double y1 = 0;
      double x2 = 0;
      double y2 = 0;
      ASSERT_EQ(std::sscanf(first.c_str(), "M%lf %lfL%lf %lf", &x1, &y1, &x2, &y2), 4);
      lines = fmt::format("{}", (y2 > y1 ? 1 : 0) + (x2 > x1 ? 2 : 0));
    }
    looks.push_back(elements[i].attributes.at("class") + lines);
  }
  ASSERT_EQ(looks.size(), 32U);
  std::sort(looks.begin(), looks.end());
  EXPECT_EQ(std::unique(looks.begin(), looks.end()), looks.end());
}

TEST(StackedBars, WhatCannotBeDrawnIsCounted) {
  StackedBars chart = two_bars();
  chart.bars = {{"odd", {std::nan(""), -1, std::numeric_limits<double>::infinity(), 5}},
                {"short", {50}}};
  const Drawing drawing = draw(chart);
  EXPECT_EQ(segments_of(elements_of(drawing)).size(), 1U);
  EXPECT_THAT(testing::description_of(drawing), HasSubstr("Left out: 4 values"));
}

TEST(StackedBars, NothingIsDrawnAsNothing) {
  EXPECT_TRUE(segments_of(elements_of(draw(StackedBars{}))).empty());
  StackedBars zeros = two_bars();
  zeros.bars = {{"zeros", {0, 0, 0}}};
  EXPECT_TRUE(segments_of(elements_of(draw(zeros))).empty());
}

RC_GTEST_PROP(StackedBarsProperty, AnyBarsAreProportionalAndInsideThePage, ()) {
  const double unit = std::pow(10.0, *rc::gen::inRange(-140, 140));
  const auto values =
      *rc::gen::resize(20, rc::gen::container<std::vector<std::vector<int>>>(
                               rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 1000))));
  StackedBars chart;
  std::size_t parts = 0;
  int most = 0;
  for (const std::vector<int>& row : values) {
    Bar bar{.label = *rc::gen::arbitrary<std::string>()};
    for (const int value : row) bar.values.push_back(value * unit);
    chart.bars.push_back(bar);
    parts = std::max(parts, row.size());
    most = std::max(most, std::accumulate(row.begin(), row.end(), 0));
  }
  chart.parts.resize(parts, "part <&>");
  const auto segments = segments_of(elements_of(draw(chart)));
  std::size_t i = 0;
  double pixels = 0;  // of one unit, from the widest bar
  for (const std::vector<int>& row : values) {
    double sum = 0;
    for (const int value : row) sum += value == 0 ? 0 : segments.at(i++).number("width");
    if (std::accumulate(row.begin(), row.end(), 0) == most && most > 0) pixels = sum / most;
  }
  RC_ASSERT(i == segments.size());
  i = 0;
  for (const std::vector<int>& row : values) {
    for (const int value : row) {
      if (value == 0) continue;
      const Element& segment = segments[i++];
      RC_ASSERT(std::abs(segment.number("width") - value * pixels) <= 0.02);
      RC_ASSERT(segment.number("x") + segment.number("width") <= kPageWidth);
    }
  }
}

}  // namespace
}  // namespace assay::plot
