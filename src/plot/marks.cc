#include "plot/marks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string_view>

#include "plot/style.h"

namespace assay::plot {
namespace {

// Corners around a point, for radius 1; areas are about those of a circle.
constexpr std::array<Point, 4> kSquare = {
    {{-0.88, -0.88}, {0.88, -0.88}, {0.88, 0.88}, {-0.88, 0.88}}};
constexpr std::array<Point, 3> kTriangle = {{{0, -1.3}, {1.2, 0.85}, {-1.2, 0.85}}};
constexpr std::array<Point, 4> kDiamond = {{{0, -1.3}, {1.3, 0}, {0, 1.3}, {-1.3, 0}}};
constexpr std::array<Point, 3> kTurnedTriangle = {{{0, 1.3}, {-1.2, -0.85}, {1.2, -0.85}}};
constexpr std::array<std::span<const Point>, 4> kPolygons = {kSquare, kTriangle, kDiamond,
                                                             kTurnedTriangle};
// With the circle five shapes, coprime to the eight colours: forty combinations.
constexpr std::size_t kShapes = kPolygons.size() + 1;

constexpr std::size_t kHatchings = 4;

// Lines of the slope (1: rising, -1: falling, 0: level) across a box, cut at its edges.
std::string hatching(const Box& box, int slope) {
  constexpr double kApart = 6;
  std::string path;
  const auto line = [&](double x1, double y1, double x2, double y2) {
    path +=
        fmt::format("M{} {}L{} {}", coordinate(x1), coordinate(y1), coordinate(x2), coordinate(y2));
  };
  const double width = box.right - box.left;
  const double height = box.bottom - box.top;
  if (slope == 0) {
    for (int i = 1; i * kApart < height; ++i) {
      const double y = box.top + i * kApart;
      line(box.left, y, box.right, y);
    }
    return path;
  }
  // A line that starts on the upper edge `reach` from a corner ends on the lower one `height`
  // nearer.
  for (int i = 1; i * kApart < width + height; ++i) {
    const double reach = i * kApart;
    const double upper = std::min(reach, width);
    const double lower = std::max(0.0, reach - height);
    const double upper_y = box.top + (reach - upper);
    const double lower_y = box.top + (reach - lower);
    const bool rising = slope > 0;
    line(rising ? box.left + upper : box.right - upper, upper_y,
         rising ? box.left + lower : box.right - lower, lower_y);
  }
  return path;
}

void draw_bar_with_caps(XmlWriter& svg, std::string_view colour, Point from, Point to) {
  constexpr double kCap = 3;
  const bool upright = std::abs(to.y - from.y) >= std::abs(to.x - from.x);
  const double across_x = upright ? kCap : 0;
  const double across_y = upright ? 0 : kCap;
  std::string path = fmt::format("M{} {}L{} {}", coordinate(from.x), coordinate(from.y),
                                 coordinate(to.x), coordinate(to.y));
  for (const Point& end : {from, to}) {
    path += fmt::format("M{} {}L{} {}", coordinate(end.x - across_x), coordinate(end.y - across_y),
                        coordinate(end.x + across_x), coordinate(end.y + across_y));
  }
  svg.element("path", {{"class", fmt::format("error {}", colour)}, {"d", path}});
}

}  // namespace

void draw_marker(XmlWriter& svg, std::size_t series, double x, double y, double radius,
                 bool filled) {
  const std::string classes = filled ? fmt::format("apart stroke-paper {}", fill_class(series))
                                     : fmt::format("thin fill-paper {}", stroke_class(series));
  if (series % kShapes == 0) {
    svg.element("circle", {{"class", classes}, {"cx", x}, {"cy", y}, {"r", radius}});
    return;
  }
  std::string points;
  for (const Point& corner : kPolygons[series % kShapes - 1]) {
    points += fmt::format("{}{},{}", points.empty() ? "" : " ", coordinate(x + corner.x * radius),
                          coordinate(y + corner.y * radius));
  }
  svg.element("polygon", {{"class", classes}, {"points", points}});
}

void draw_error_bar(XmlWriter& svg, std::size_t series, Point from, Point to) {
  draw_bar_with_caps(svg, stroke_class(series), from, to);
}

void draw_area(XmlWriter& svg, std::size_t series, const Box& box) {
  // A thin area keeps all its width: it has no outline.
  constexpr double kThin = 4;
  constexpr double kInset = 0.6;  // half that line
  const bool thin = box.right - box.left <= kThin;
  svg.element(
      "rect",
      {{"class", fmt::format("area {}{}", fill_class(series), thin ? "" : " apart stroke-paper")},
       {"x", box.left},
       {"y", box.top},
       {"width", box.right - box.left},
       {"height", box.bottom - box.top}});
  // Series of the same colour, `kColours` apart, are hatched differently.
  const std::size_t manner = (series + series / kColours) % kHatchings;
  if (manner == 0 || thin) return;
  const Box inner{box.left + kInset, box.top + kInset, box.right - kInset, box.bottom - kInset};
  svg.element("path", {{"class", fmt::format("hatch stroke-on-c{}", series % kColours)},
                       {"d", hatching(inner, manner == 1   ? 1
                                             : manner == 2 ? -1
                                                           : 0)}});
}

void draw_sample(XmlWriter& svg, const LegendEntry& entry, double x, double y) {
  const double middle = x + kSampleWidth / 2;
  switch (entry.sample) {
    case LegendMark::kArea:
      draw_area(svg, entry.series, {x, y - 6, x + kSampleWidth, y + 6});
      break;
    case LegendMark::kMarker:
      draw_marker(svg, entry.series, middle, y);
      break;
    case LegendMark::kBand:
      svg.element("rect", {{"class", "band fill-soft"},
                           {"x", x},
                           {"y", y - 6},
                           {"width", kSampleWidth},
                           {"height", 12}});
      break;
    case LegendMark::kErrorBar:
      draw_bar_with_caps(svg, "stroke-soft", {middle, y - 6}, {middle, y + 6});
      break;
    case LegendMark::kLevel:
      svg.element("line", {{"class", level_class(entry.series)},
                           {"x1", x},
                           {"y1", y},
                           {"x2", x + kSampleWidth},
                           {"y2", y}});
      break;
    case LegendMark::kLevelBand:
      svg.element("rect", {{"class", level_band_class(entry.series)},
                           {"x", x},
                           {"y", y - 6},
                           {"width", kSampleWidth},
                           {"height", 12}});
      break;
    case LegendMark::kReference:
    case LegendMark::kFront:
      svg.element("line", {{"class", entry.sample == LegendMark::kFront ? "line stroke-ink"
                                                                        : "dashes stroke-soft"},
                           {"x1", x},
                           {"y1", y},
                           {"x2", x + kSampleWidth},
                           {"y2", y}});
      break;
  }
}

double draw_legend(XmlWriter& svg, const std::vector<LegendEntry>& entries, double left, double top,
                   double width) {
  constexpr double kRow = 20;
  constexpr double kAfterSample = 6;
  constexpr double kBetween = 18;
  if (entries.empty()) return top;
  double x = left;
  double y = top + kRow / 2;
  for (const LegendEntry& entry : entries) {
    const std::string name = fitted(entry.name, kTextSize, width - kSampleWidth - kAfterSample);
    const double wide = kSampleWidth + kAfterSample + text_width(name, kTextSize);
    if (x > left && x + wide > left + width) {
      x = left;
      y += kRow;
    }
    draw_sample(svg, entry, x, y);
    svg.element("text",
                {{"class", "fill-ink"}, {"x", x + kSampleWidth + kAfterSample}, {"y", y + 4}},
                name);
    x += wide + kBetween;
  }
  return y + kRow / 2;
}

}  // namespace assay::plot
