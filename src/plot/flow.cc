#include "plot/flow.h"

#include <fmt/format.h>

#include <algorithm>

#include "plot/labels.h"
#include "plot/lettering.h"
#include "plot/style.h"
#include "plot/svg.h"

namespace assay::plot {
namespace {

constexpr double kBoxWidth = 208;
constexpr double kBoxHeight = 40;
constexpr double kBoxPitch = 48;
constexpr double kCardPadding = 10;

double column_height(std::size_t boxes) {
  return boxes == 0 ? 0 : kBoxPitch * static_cast<double>(boxes) - (kBoxPitch - kBoxHeight);
}

void draw_box(Svg& svg, const FlowBox& box, std::size_t colour, double left, double top) {
  svg.open("g", {});
  svg.element("title", {},
              box.detail.empty() ? box.title : fmt::format("{}: {}", box.title, box.detail));
  svg.element("rect",
              {{"class", fmt::format("card {} {}", fill_class(colour), stroke_class(colour))},
               {"x", left},
               {"y", top},
               {"width", kBoxWidth},
               {"height", kBoxHeight},
               {"rx", "4"}});
  const double room = kBoxWidth - 2 * kCardPadding;
  const double first = box.detail.empty() ? top + kBoxHeight / 2 + 4 : top + 17;
  svg.element("text", {{"class", "fill-ink"}, {"x", left + kCardPadding}, {"y", first}},
              fitted(box.title, kTextSize, room));
  if (!box.detail.empty()) {
    svg.element("text", {{"class", "small fill-soft"}, {"x", left + kCardPadding}, {"y", top + 32}},
                fitted(box.detail, kSmallSize, room));
  }
  svg.close();
}

void draw_wire(Svg& svg, LabelPlace from, LabelPlace to) {
  const double middle = (from.x + to.x) / 2;
  svg.element("path",
              {{"class", "wire stroke-edge"},
               {"d", fmt::format("M{} {}C{} {} {} {} {} {}", coordinate(from.x), coordinate(from.y),
                                 coordinate(middle), coordinate(from.y), coordinate(middle),
                                 coordinate(to.y), coordinate(to.x), coordinate(to.y))}});
  // Its tip: which way things went.
  svg.element("polygon",
              {{"class", "fill-edge"},
               {"points", fmt::format("{},{} {},{} {},{}", coordinate(to.x), coordinate(to.y),
                                      coordinate(to.x - 7), coordinate(to.y - 4),
                                      coordinate(to.x - 7), coordinate(to.y + 4))}});
}

std::string column_in_words(const char* name, const std::vector<FlowBox>& boxes) {
  std::string words = fmt::format(" {}:", name);
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    words += fmt::format("{}{}", i == 0 ? " " : "; ", boxes[i].title);
    if (!boxes[i].detail.empty()) words += fmt::format(" ({})", boxes[i].detail);
  }
  return words + (boxes.empty() ? " nothing." : ".");
}

}  // namespace

std::string draw(const Flow& chart) {
  Svg svg;
  const double top = draw_heading(svg, chart.heading);
  const double height =
      std::max({column_height(chart.left.size()), column_height(chart.right.size()), kBoxHeight});
  const double middle_x = (kPageWidth - kBoxWidth) / 2;
  const double right_x = kPageWidth - kMargin - kBoxWidth;
  const double middle_y = top + height / 2;
  // A bundle of wires ends along the edge of the box, not all in one point.
  const auto along_edge = [&](std::size_t i, std::size_t count) {
    const double share = (static_cast<double>(i) + 0.5) / static_cast<double>(count);
    return middle_y - kBoxHeight / 2 + 6 + share * (kBoxHeight - 12);
  };
  const auto draw_column = [&](const std::vector<FlowBox>& boxes, double x, std::size_t colour,
                               bool into) {
    double y = top + (height - column_height(boxes.size())) / 2;
    for (std::size_t i = 0; i < boxes.size(); ++i, y += kBoxPitch) {
      const double edge = along_edge(i, boxes.size());
      if (into) {
        draw_wire(svg, {x + kBoxWidth, y + kBoxHeight / 2}, {middle_x, edge});
      } else {
        draw_wire(svg, {middle_x + kBoxWidth, edge}, {x, y + kBoxHeight / 2});
      }
      draw_box(svg, boxes[i], colour, x, y);
    }
  };
  draw_column(chart.left, kMargin, 6, true);
  draw_column(chart.right, right_x, 2, false);
  draw_box(svg, chart.middle, 0, middle_x, middle_y - kBoxHeight / 2);
  const std::string words =
      fmt::format("A flow from left to right through {}{}.", chart.middle.title,
                  chart.middle.detail.empty() ? "" : fmt::format(" ({})", chart.middle.detail)) +
      column_in_words("Into it", chart.left) + column_in_words("Out of it", chart.right);
  return page(chart.heading, words, top + height + kMargin, svg);
}

}  // namespace assay::plot
