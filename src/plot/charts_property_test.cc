// What must hold for any chart of any data: it is XML, nothing is outside the page, no two texts
// touch.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>

#include "base/testing/temp_dir.h"
#include "plot/distribution.h"
#include "plot/flow.h"
#include "plot/intervals.h"
#include "plot/labels.h"
#include "plot/lines.h"
#include "plot/scatter.h"
#include "plot/stacked_bars.h"
#include "plot/testing/xml.h"
#include "plot/timeline.h"

namespace assay::plot {
namespace {

using testing::Element;

double any_value() {
  const double infinity = std::numeric_limits<double>::infinity();
  const double odd = *rc::gen::element(std::nan(""), infinity, -infinity, 0.0, -0.0, 1e308, -1e308,
                                       5e-324, 1.0, 1e150, -1e150, 1e-150);
  const double usual =
      *rc::gen::inRange(-1000, 100'000) * std::pow(10.0, *rc::gen::inRange(-12, 12));
  return *rc::gen::weightedElement<int>({{1, 0}, {4, 1}}) == 0 ? odd : usual;
}

std::string any_text() {
  return *rc::gen::oneOf(rc::gen::arbitrary<std::string>(),
                         rc::gen::element<std::string>("", "<&> \"'", "]]>", "-->", "\xFF\x01",
                                                       std::string(500, 'W'), "日本語のラベル"));
}

Axis any_axis() {
  Axis axis{.title = any_text(),
            .scale = *rc::gen::element(Scale::kLinear, Scale::kLog2, Scale::kLog10),
            .from_zero = *rc::gen::arbitrary<bool>()};
  if (*rc::gen::inRange(0, 4) == 0) {
    axis.format = [](double value) { return fmt::format("<{} & \"units\">", value); };
    axis.tick_format = axis.format;
  }
  return axis;
}

std::optional<Interval> any_interval() {
  if (*rc::gen::arbitrary<bool>()) return std::nullopt;
  return Interval{any_value(), any_value()};
}

int any_count() {
  return *rc::gen::element(0, 1, 2, 3, 7, 25);
}

Drawing any_bars(double width) {
  StackedBars chart{.heading = {any_text(), any_text()}, .value = any_axis()};
  for (int i = any_count(); i > 0; --i) chart.parts.push_back(any_text());
  for (int i = *rc::gen::inRange(0, 4); i > 0; --i) {
    Bar& bar = chart.bars.emplace_back(Bar{.label = any_text()});
    for (int j = any_count(); j > 0; --j) bar.values.push_back(any_value());
  }
  return draw(chart, width);
}

Drawing any_lines(double width) {
  Lines chart{.heading = {any_text(), any_text()},
              .x = any_axis(),
              .y = any_axis(),
              .interval_style = *rc::gen::element(IntervalStyle::kBand, IntervalStyle::kErrorBars),
              .interval_name = any_text()};
  for (int i = *rc::gen::inRange(0, 4); i > 0; --i) {
    LineSeries& series = chart.series.emplace_back(LineSeries{.name = any_text()});
    for (int j = any_count(); j > 0; --j) {
      series.points.push_back({any_value(), any_value(), any_interval()});
    }
  }
  if (*rc::gen::arbitrary<bool>())
    chart.reference = Reference{any_text(), any_value(), any_value()};
  return draw(chart, width);
}

Levels any_levels() {
  Levels levels;
  for (int i = *rc::gen::inRange(0, 4); i > 0; --i)
    levels.lines.push_back({any_text(), any_value()});
  for (int i = *rc::gen::inRange(0, 3); i > 0; --i) {
    levels.bands.push_back({any_text(), {any_value(), any_value()}});
  }
  return levels;
}

Drawing any_distribution(double width) {
  Distribution chart{.heading = {any_text(), any_text()},
                     .value = any_axis(),
                     .values = {},
                     .counted = any_text()};
  for (int i = any_count(); i > 0; --i) chart.values.push_back(any_value());
  if (*rc::gen::arbitrary<bool>())
    chart.name_of = [](std::size_t i) { return fmt::format("<{}>", i); };
  return draw(chart, width);
}

Drawing any_timeline(double width) {
  Timeline chart{.heading = {any_text(), any_text()}, .time = any_axis(), .lanes = {}};
  for (int i = *rc::gen::inRange(0, 5); i > 0; --i) {
    Lane& lane = chart.lanes.emplace_back(Lane{.name = any_text()});
    for (int j = any_count(); j > 0; --j)
      lane.slices.push_back({any_value(), any_value(), any_text()});
    for (int j = any_count(); j > 0; --j) lane.moments.push_back({any_value(), any_text()});
  }
  return draw(chart, width);
}

Drawing any_intervals(double width) {
  Intervals chart{
      .heading = {any_text(), any_text()}, .value = any_axis(), .rows = {}, .levels = any_levels()};
  for (int i = any_count(); i > 0; --i) {
    chart.rows.push_back({any_text(), any_value(), any_interval(), static_cast<std::size_t>(i)});
  }
  return draw(chart, width);
}

Drawing any_flow(double width) {
  Flow chart{.heading = {any_text(), any_text()}, .left = {}, .middle = {any_text()}, .right = {}};
  for (int i = any_count(); i > 0; --i) chart.left.push_back({any_text(), any_text()});
  for (int i = any_count(); i > 0; --i) chart.right.push_back({any_text(), any_text()});
  return draw(chart, width);
}

Drawing any_scatter(double width) {
  Scatter chart{.heading = {any_text(), any_text()},
                .x = any_axis(),
                .y = any_axis(),
                .front_name = any_text(),
                .label_all = *rc::gen::arbitrary<bool>(),
                .levels = any_levels()};
  for (int i = *rc::gen::inRange(0, 4); i > 0; --i) chart.groups.push_back(any_text());
  for (int i = any_count(); i > 0; --i) {
    chart.points.push_back({.x = any_value(),
                            .y = any_value(),
                            .label = any_text(),
                            .group = static_cast<std::size_t>(*rc::gen::inRange(0, 12)),
                            .x_interval = any_interval(),
                            .y_interval = any_interval()});
  }
  return draw(chart, width);
}

// Every number of a path or of points; the letters between them mean nothing here.
std::vector<double> numbers_in(std::string text) {
  std::vector<double> numbers;
  for (char& c : text) {
    if (std::string_view("MLHVCZ,").find(c) != std::string_view::npos) c = ' ';
  }
  const char* at = text.c_str();
  for (char* end = nullptr;; at = end) {
    const double number = std::strtod(at, &end);
    if (end == at) break;
    numbers.push_back(number);
  }
  RC_ASSERT(std::string_view(at).find_first_not_of(' ') == std::string_view::npos);
  return numbers;
}

// The area of a text, from its baseline up to the height of a small letter.
Box box_of(const Element& text) {
  const double size = text.has_class("title")   ? kTitleSize
                      : text.has_class("small") ? kSmallSize
                                                : kTextSize;
  const double width = text_width(text.text, size);
  const double x = text.number("x");
  const double left = text.has_class("end")      ? x - width
                      : text.has_class("middle") ? x - width / 2
                                                 : x;
  return {left, text.number("y") - 0.7 * size, left + width, text.number("y")};
}

void assert_on_page(const std::vector<Element>& elements, double width) {
  const std::vector<double> page = numbers_in(elements.front().attributes.at("viewBox"));
  RC_ASSERT(page.size() == 4U && page[2] == width && page[3] > 0 && page[3] < 5000);
  const auto lies_within = [&](double number, double most) {
    RC_ASSERT(std::isfinite(number) && number >= -0.01 && number <= most + 0.01);
  };
  for (const Element& element : elements) {
    for (const auto& [name, value] : element.attributes) {
      if (name == "x" || name == "cx" || name == "x1" || name == "x2" || name == "width") {
        if (element.name != "svg") lies_within(element.number(name), width);
      } else if (name == "y" || name == "cy" || name == "y1" || name == "y2" || name == "height") {
        lies_within(element.number(name), page[3]);
      } else if (name == "d" || name == "points") {
        for (const double number : numbers_in(value)) {
          lies_within(number, std::max(width, page[3]));
        }
      }
    }
    if (element.name != "text") continue;
    const Box box = box_of(element);
    lies_within(box.left, width);
    lies_within(box.right, width);
  }
}

// Labels of ticks, points, bars and lines, titles and legends: none touches another.
void assert_texts_apart(const std::vector<Element>& elements) {
  std::vector<Box> boxes;
  for (const Element& element : elements) {
    if (element.name != "text" || element.text.empty()) continue;
    const Box box = box_of(element);
    for (const Box& other : boxes) RC_ASSERT(!box.overlaps(other));
    boxes.push_back(box);
  }
}

RC_GTEST_PROP(ChartsProperty, AnyDataGivesADrawingOnItsPage, ()) {
  // A number, not a function: RapidCheck prints what it drew when a property fails, and cannot
  // print functions.
  constexpr std::array kDrawings = {any_bars,     any_lines,     any_scatter, any_distribution,
                                    any_timeline, any_intervals, any_flow};
  const auto kind = *rc::gen::inRange<std::size_t>(0, kDrawings.size());
  const double width = *rc::gen::element(kPageWidth, kNarrowWidth);
  const auto elements = testing::parse_xml(kDrawings.at(kind)(width).svg());
  RC_ASSERT(elements.has_value());
  const Element& root = elements->front();
  RC_ASSERT(root.name == "svg" && root.attributes.at("role") == "img");
  RC_ASSERT((*elements)[1].name == "title" && (*elements)[2].name == "desc");
  RC_ASSERT(!(*elements)[2].text.empty());
  assert_on_page(*elements, width);
  assert_texts_apart(*elements);
}

// A second opinion on what is XML: Python's parser, which is Expat.
TEST(Charts, AreXmlForOthersToo) {
  const base::testing::TempDir directory;
  const double nothing = std::nan("");
  const std::string hostile = "<&> \"'\x01\xFF]]>\xEF\xBF\xBE";
  const std::vector<Drawing> drawings = {
      draw(StackedBars{}),
      draw(Lines{}),
      draw(Scatter{}),
      draw(Distribution{}),
      draw(Timeline{}),
      draw(Intervals{}),
      draw(Flow{}),
      draw(Distribution{.heading = {hostile}, .values = {1, 2, nothing}, .counted = hostile}),
      draw(Timeline{.heading = {hostile}, .lanes = {{hostile, {{0, 1, hostile}}, {{1, hostile}}}}}),
      draw(Intervals{.heading = {hostile},
                     .rows = {{hostile, 1, Interval{0, 2}}},
                     .levels = {.lines = {{hostile, 1}}, .bands = {{hostile, {0, 1}}}}}),
      draw(Flow{.heading = {hostile}, .left = {{hostile, hostile}}, .middle = {hostile}}),
      draw(StackedBars{.heading = {hostile, hostile},
                       .value = {.title = hostile},
                       .parts = {hostile, "b"},
                       .bars = {{hostile, {1, nothing}}, {hostile, {2, 3}}}}),
      draw(Lines{.heading = {hostile},
                 .series = {{hostile, {{1, 2, Interval{1, 3}}, {2, 3, Interval{2, 4}}}}},
                 .reference = Reference{hostile, 1},
                 .interval_name = hostile}),
      draw(Scatter{.heading = {hostile},
                   .groups = {hostile},
                   .points = {{.x = 1, .y = 2, .label = hostile}},
                   .front_name = hostile})};
  std::string command =
      "python3 -c 'import sys, xml.etree.ElementTree as e; [e.parse(f) for f in sys.argv[1:]]'";
  for (std::size_t i = 0; i < drawings.size(); ++i) {
    const std::string file = (directory.path() / fmt::format("{}.svg", i)).string();
    std::ofstream(file) << drawings[i].svg();
    command += " '" + file + "'";
  }
  EXPECT_EQ(std::system(command.c_str()), 0);
}

}  // namespace
}  // namespace assay::plot
