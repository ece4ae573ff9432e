// Distributions, timelines, intervals and flows, read back from the drawing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "plot/distribution.h"
#include "plot/flow.h"
#include "plot/intervals.h"
#include "plot/scatter.h"
#include "plot/testing/xml.h"
#include "plot/timeline.h"

namespace assay::plot {
namespace {

using testing::description_of;
using testing::Element;
using testing::elements_of;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::those;

double text_at(const std::vector<Element>& elements, std::string_view text, const char* where) {
  for (const Element& element : those(elements, "text")) {
    if (element.text == text) return element.number(where);
  }
  ADD_FAILURE() << "no text '" << text << "'";
  return 0;
}

TEST(Distribution, BarsCountEveryValueFromZero) {
  const Distribution chart{.heading = {"Times"},
                           .value = {.title = "ms"},
                           .values = {10, 10, 10, 12, 14, 20},
                           .counted = "steps"};
  const auto elements = elements_of(draw(chart));
  const double zero = text_at(elements, "0", "y") - 4;
  const double one = text_at(elements, "1", "y") - 4;
  double counted = 0;
  for (const Element& bar : those(elements, "rect", "bin")) {
    EXPECT_NEAR(bar.number("y") + bar.number("height"), zero, 0.02);
    counted += bar.number("height") / (zero - one);
  }
  EXPECT_NEAR(counted, 6, 0.02);
  const auto dots = those(elements, "path", "dots");
  ASSERT_EQ(dots.size(), 1U);
  const std::string& path = dots[0].attributes.at("d");
  EXPECT_EQ(std::count(path.begin(), path.end(), 'M'), 6);
  EXPECT_THAT(description_of(draw(chart)), HasSubstr("From 10 to 20; p50 11, p90 20, p99 20."));
}

TEST(Distribution, OfManyValuesTheOutermostKeepTheirDots) {
  Distribution chart{.heading = {"Times"}, .value = {.title = "ms"}, .values = {}};
  for (int i = 0; i < 100'000; ++i) chart.values.push_back(100 + std::sin(i));
  chart.values[77'777] = 900;
  chart.name_of = [](std::size_t i) { return "step " + std::to_string(i + 1); };
  const Drawing drawn = draw(chart);
  const std::string drawing = drawn.svg();
  EXPECT_LT(drawing.size(), 60'000U);
  const auto elements = elements_of(drawing);
  const std::string dots = those(elements, "path", "dots").at(0).attributes.at("d");
  EXPECT_LE(std::count(dots.begin(), dots.end(), 'M'), 2001);
  EXPECT_THAT(drawing, HasSubstr("most: 900, step 77778"));
  EXPECT_THAT(description_of(drawn), HasSubstr("every n-th of the others"));
}

TEST(Timeline, SlicesLieAtTheirPositionsOnTheAxis) {
  const Timeline chart{.heading = {"Run"},
                       .time = {.title = "minutes"},
                       .lanes = {{"steps", {{2, 6, "work"}, {8, 8.0001, "late"}}, {}},
                                 {"saved", {}, {{4, "step 9"}, {std::nan(""), "never"}}}}};
  const auto elements = elements_of(draw(chart));
  const double x2 = text_at(elements, "2", "x");
  const double x8 = text_at(elements, "8", "x");
  const auto areas = those(elements, "rect", "area");
  ASSERT_EQ(areas.size(), 2U);
  EXPECT_NEAR(areas[0].number("x"), x2, 0.02);
  EXPECT_NEAR(areas[0].number("width"), (x8 - x2) * 4 / 6, 0.02);
  EXPECT_GE(areas[1].number("width"), 1);  // seen, however short
  const auto marks = those(elements, "polygon");
  ASSERT_EQ(marks.size(), 1U);
  EXPECT_THAT(description_of(draw(chart)),
              ::testing::AllOf(HasSubstr("steps: work from 2 to 6, late from 8 to 8."),
                               HasSubstr("saved: step 9 at 4."), HasSubstr("Left out: 1 value")));
}

// On a phone labels are above their rows, where lines of the chart would cross them.
TEST(Intervals, NarrowLabelsHavePaperOfTheirOwn) {
  const Drawing drawing = draw(Intervals{.heading = {"Effect"},
                                         .value = {.title = "%"},
                                         .rows = {{"a label", 1.2, Interval{0.9, 1.5}}},
                                         .levels = {.lines = {{"no effect", 0}}}},
                               kNarrowWidth);
  const std::string svg = drawing.svg();
  const std::size_t label = svg.rfind(">a label<");
  ASSERT_NE(label, std::string::npos);
  const std::size_t paper = svg.rfind("<rect class=\"fill-paper\"", label);
  ASSERT_NE(paper, std::string::npos);
  // After the lines, and before its label.
  EXPECT_GT(paper, svg.rfind("<line", label));
}

TEST(Intervals, RowsAndLevelsShareTheAxis) {
  const Intervals chart{.heading = {"Effect"},
                        .value = {.title = "%"},
                        .rows = {{"rank", 2, Interval{1, 3}}, {"noise", 0.5}},
                        .levels = {.lines = {{"none", 0}, {"margin", 1}}}};
  const auto elements = elements_of(draw(chart));
  const auto circles = those(elements, "circle");
  ASSERT_EQ(circles.size(), 2U);
  EXPECT_NEAR(circles[0].number("cx"), text_at(elements, "2", "x"), 0.02);
  const auto spans = those(elements, "line", "line");
  ASSERT_EQ(spans.size(), 1U);
  EXPECT_NEAR(spans[0].number("x1"), text_at(elements, "1", "x"), 0.02);
  EXPECT_NEAR(spans[0].number("x2"), text_at(elements, "3", "x"), 0.02);
  const auto margin = those(elements, "line", "dashes");
  ASSERT_EQ(margin.size(), 2U);  // and one in the legend
  EXPECT_NEAR(margin[1].number("x1"), spans[0].number("x1"), 0.02);
  EXPECT_THAT(description_of(draw(chart)), HasSubstr("rank: 2 (1 to 3). noise: 0.5."));
}

TEST(Scatter, BandsAndLinesLieAcross) {
  const Scatter chart{.heading = {"Pairs"},
                      .x = {.title = "block"},
                      .y = {.title = "%"},
                      .points = {{.x = 1, .y = 20}, {.x = 2, .y = 40}},
                      .levels = {.lines = {{"none", 0}}, .bands = {{"95 %", {20, 40}}}}};
  const auto elements = elements_of(draw(chart));
  const auto bands = those(elements, "rect", "band");
  ASSERT_EQ(bands.size(), 2U);
  EXPECT_NEAR(bands[1].number("height"),
              text_at(elements, "20", "y") - text_at(elements, "40", "y"), 0.02);
  EXPECT_THAT(description_of(draw(chart)),
              HasSubstr("A line at 0: none. A band from 20 to 40: 95 %."));
}

TEST(Flow, EveryBoxIsWiredToTheMiddle) {
  const Flow chart{.heading = {"Lineage"},
                   .left = {{"a", "from 1"}, {"b"}},
                   .middle = {"run"},
                   .right = {{"out"}}};
  const auto elements = elements_of(draw(chart));
  EXPECT_EQ(those(elements, "rect", "card").size(), 4U);
  EXPECT_EQ(those(elements, "path", "wire").size(), 3U);
  EXPECT_THAT(description_of(draw(chart)),
              HasSubstr("through run. Into it: a (from 1); b. Out of it: out."));
}

TEST(Flow, IsStackedWhereItIsNarrow) {
  const Flow chart{
      .heading = {"Lineage"}, .left = {{"a"}, {"b"}}, .middle = {"run"}, .right = {{"out"}}};
  const auto cards = those(elements_of(draw(chart, kNarrowWidth)), "rect", "card");
  ASSERT_EQ(cards.size(), 4U);
  for (std::size_t i = 1; i < cards.size(); ++i) {
    EXPECT_GE(cards[i].number("y"), cards[i - 1].number("y") + cards[i - 1].number("height"));
    EXPECT_EQ(cards[i].number("x"), cards[0].number("x"));
  }
}

TEST(Drawing, IsAFileOrAPartOfAPage) {
  const Drawing drawing = draw(Flow{.heading = {"F"}, .left = {{"<a & \"b\">"}}, .middle = {"m"}});
  XmlWriter document;
  drawing.write_to(document);
  EXPECT_THAT(document.text(), Not(HasSubstr("<style")));
  EXPECT_EQ(elements_of(document.text()).size() + 1, elements_of(drawing).size());
  EXPECT_EQ(drawing.description(), description_of(drawing));
  EXPECT_THAT(drawing.description(), HasSubstr("<a & \"b\">"));
}

}  // namespace
}  // namespace assay::plot
