#include "plot/flow.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "plot/labels.h"
#include "plot/style.h"

namespace assay::plot {
namespace {

constexpr double kMostBoxWidth = 208;
constexpr double kBoxHeight = 40;
constexpr double kBoxPitch = 48;
constexpr double kCardPadding = 10;
constexpr double kBetweenRows = 26;  // of the layout for narrow drawings

constexpr std::size_t kInputColour = 6;
constexpr std::size_t kMiddleColour = 0;
constexpr std::size_t kOutputColour = 2;

double column_height(std::size_t boxes) {
  return boxes == 0 ? 0 : kBoxPitch * static_cast<double>(boxes) - (kBoxPitch - kBoxHeight);
}

void draw_box(XmlWriter& svg, const FlowBox& box, std::size_t colour, double left, double top,
              double width) {
  svg.open("g", {});
  svg.element("title", {},
              box.detail.empty() ? box.title : fmt::format("{}: {}", box.title, box.detail));
  svg.element("rect",
              {{"class", fmt::format("card {} {}", fill_class(colour), stroke_class(colour))},
               {"x", left},
               {"y", top},
               {"width", width},
               {"height", kBoxHeight},
               {"rx", "4"}});
  const double inside = width - 2 * kCardPadding;
  const double first = box.detail.empty() ? top + kBoxHeight / 2 + 4 : top + 17;
  svg.element("text", {{"class", "fill-ink"}, {"x", left + kCardPadding}, {"y", first}},
              fitted(box.title, kTextSize, inside));
  if (!box.detail.empty()) {
    svg.element("text", {{"class", "small fill-soft"}, {"x", left + kCardPadding}, {"y", top + 32}},
                fitted(box.detail, kSmallSize, inside));
  }
  svg.close();
}

void draw_arrow_head(XmlWriter& svg, Point at, bool down) {
  const double along = down ? 4 : 7;
  const double across = down ? 7 : 4;
  svg.element("polygon",
              {{"class", "fill-edge"},
               {"points", fmt::format("{},{} {},{} {},{}", coordinate(at.x), coordinate(at.y),
                                      coordinate(at.x - along), coordinate(at.y - across),
                                      coordinate(down ? at.x + along : at.x - along),
                                      coordinate(down ? at.y - across : at.y + across))}});
}

void draw_wire(XmlWriter& svg, Point from, Point to) {
  const double middle = (from.x + to.x) / 2;
  svg.element("path",
              {{"class", "wire stroke-edge"},
               {"d", fmt::format("M{} {}C{} {} {} {} {} {}", coordinate(from.x), coordinate(from.y),
                                 coordinate(middle), coordinate(from.y), coordinate(middle),
                                 coordinate(to.y), coordinate(to.x), coordinate(to.y))}});
  draw_arrow_head(svg, to, false);
}

std::string column_description(const char* name, const std::vector<FlowBox>& boxes) {
  std::string text = fmt::format(" {}:", name);
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    text += fmt::format("{}{}", i == 0 ? " " : "; ", boxes[i].title);
    if (!boxes[i].detail.empty()) text += fmt::format(" ({})", boxes[i].detail);
  }
  return text + (boxes.empty() ? " nothing." : ".");
}

// Three columns, every box connected to the one in the middle. Returns the height used.
double draw_columns(Canvas& canvas, const Flow& chart, double top) {
  const double box_width = std::min(kMostBoxWidth, canvas.width / 3.5);
  const double height =
      std::max({column_height(chart.left.size()), column_height(chart.right.size()), kBoxHeight});
  const double middle_x = (canvas.width - box_width) / 2;
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
        draw_wire(canvas.svg, {x + box_width, y + kBoxHeight / 2}, {middle_x, edge});
      } else {
        draw_wire(canvas.svg, {middle_x + box_width, edge}, {x, y + kBoxHeight / 2});
      }
      draw_box(canvas.svg, boxes[i], colour, x, y, box_width);
    }
  };
  draw_column(chart.left, kMargin, kInputColour, true);
  draw_column(chart.right, canvas.width - kMargin - box_width, kOutputColour, false);
  draw_box(canvas.svg, chart.middle, kMiddleColour, middle_x, middle_y - kBoxHeight / 2, box_width);
  return height;
}

// Inputs, the middle and outputs below each other, with an arrow from one to the next.
double draw_rows(Canvas& canvas, const Flow& chart, double top) {
  double y = top;
  const auto draw_boxes = [&](const std::vector<FlowBox>& boxes, std::size_t colour) {
    for (const FlowBox& box : boxes) {
      draw_box(canvas.svg, box, colour, kMargin, y, canvas.inner_width());
      y += kBoxPitch;
    }
    if (!boxes.empty()) y -= kBoxPitch - kBoxHeight;
  };
  const auto draw_arrow = [&] {
    const double x = canvas.width / 2;
    canvas.svg.element("path", {{"class", "wire stroke-edge"},
                                {"d", fmt::format("M{} {}V{}", coordinate(x), coordinate(y),
                                                  coordinate(y + kBetweenRows))}});
    draw_arrow_head(canvas.svg, {x, y + kBetweenRows}, true);
    y += kBetweenRows;
  };
  draw_boxes(chart.left, kInputColour);
  if (!chart.left.empty()) draw_arrow();
  draw_boxes({chart.middle}, kMiddleColour);
  if (!chart.right.empty()) draw_arrow();
  draw_boxes(chart.right, kOutputColour);
  return y - top;
}

}  // namespace

Drawing draw(const Flow& chart, double width) {
  Canvas canvas(width);
  const double top = canvas.draw_heading(chart.heading);
  const double height =
      canvas.narrow() ? draw_rows(canvas, chart, top) : draw_columns(canvas, chart, top);
  const std::string text =
      fmt::format("A flow from left to right through {}{}.", chart.middle.title,
                  chart.middle.detail.empty() ? "" : fmt::format(" ({})", chart.middle.detail)) +
      column_description("Into it", chart.left) + column_description("Out of it", chart.right);
  return std::move(canvas).finish(chart.heading, text, top + height + kMargin);
}

}  // namespace assay::plot
