#include "plot/scatter.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/pareto.h"
#include "plot/axis_drawing.h"
#include "plot/marks.h"
#include "plot/style.h"

namespace assay::plot {
namespace {

constexpr double kScatterHeight = 360;
constexpr double kNarrowScatterHeight = 260;
constexpr double kFrontRadius = 5;
constexpr double kOtherRadius = 3.5;
constexpr double kRingRadius = 9;
constexpr double kMostPointLabel = 200;
// More are unreadable, and searching places for them takes time.
constexpr std::size_t kMostLabels = 100;
// On a narrow drawing, of a longer front only its ends are labelled (and what is marked): labels
// between them would lie line on line.
constexpr std::size_t kMostNarrowFront = 3;
constexpr int kFarthest = 5;  // of a label, in radii of its point

std::vector<ScatterPoint> clean_points(const Scatter& chart, Omitted& omitted) {
  std::vector<ScatterPoint> points;
  for (const ScatterPoint& point : chart.points) {
    if (!chart.x.shows(point.x) || !chart.y.shows(point.y)) {
      ++omitted.values;
      continue;
    }
    ScatterPoint& made = points.emplace_back(point);
    made.x_interval = shown_interval(chart.x, point.x_interval, omitted);
    made.y_interval = shown_interval(chart.y, point.y_interval, omitted);
  }
  return points;
}

XyExtents point_extents(const std::vector<ScatterPoint>& points) {
  XyExtents extents;
  for (const ScatterPoint& point : points) {
    extents.x.add(point.x);
    extents.y.add(point.y);
    for (const auto& [interval, extent] :
         {std::pair(point.x_interval, &extents.x), std::pair(point.y_interval, &extents.y)}) {
      if (!interval) continue;
      extent->add(interval->low);
      extent->add(interval->high);
    }
  }
  return extents;
}

std::vector<std::size_t> front_of(const Scatter& chart, const std::vector<ScatterPoint>& points) {
  if (chart.front_name.empty()) return {};
  std::vector<base::Tradeoff> candidates;
  for (const ScatterPoint& point : points) candidates.push_back({point.x, point.y});
  return base::pareto_front(candidates);
}

// Along the front in steps: to the right at a point's height, then down to the next. Every point
// above and to the right of the line is dominated.
void draw_front(XmlWriter& svg, const std::vector<ScatterPoint>& points,
                const std::vector<std::size_t>& front, const XyPlot& plot, FreeSpace& space) {
  constexpr double kHalf = 1.5;
  std::string path;
  Point last;
  for (const std::size_t i : front) {
    const Point place = plot.at(points[i].x, points[i].y);
    if (path.empty()) {
      path = fmt::format("M{} {}", coordinate(place.x), coordinate(place.y));
    } else {
      path += fmt::format("H{}V{}", coordinate(place.x), coordinate(place.y));
      space.take({last.x, last.y - kHalf, place.x, last.y + kHalf});
      space.take({place.x - kHalf, last.y, place.x + kHalf, place.y});
    }
    last = place;
  }
  if (front.size() > 1) svg.element("path", {{"class", "line front stroke-ink"}, {"d", path}});
}

// The plot without points and their error bars.
FreeSpace space_beside(const std::vector<ScatterPoint>& points, const XyPlot& plot) {
  constexpr double kCap = 3;
  FreeSpace space(plot.box);
  for (const ScatterPoint& point : points) {
    const Point place = plot.at(point.x, point.y);
    // A ring's corners are free.
    const double radius = point.marked ? kRingRadius * 0.75 : kFrontRadius;
    space.take({place.x - radius, place.y - radius, place.x + radius, place.y + radius});
    if (point.x_interval) {
      space.take({plot.x.at(point.x_interval->low), place.y - kCap,
                  plot.x.at(point.x_interval->high), place.y + kCap});
    }
    if (point.y_interval) {
      space.take({place.x - kCap, plot.y.at(point.y_interval->high), place.x + kCap,
                  plot.y.at(point.y_interval->low)});
    }
  }
  return space;
}

std::string point_description(const Scatter& chart, const ScatterPoint& point) {
  return fmt::format("{}{}{} and {}", point.label, point.label.empty() ? "" : ": ",
                     chart.x.text_of(point.x), chart.y.text_of(point.y));
}

void draw_point(XmlWriter& svg, const Scatter& chart, const ScatterPoint& point, const XyPlot& plot,
                double radius, bool filled) {
  const Point place = plot.at(point.x, point.y);
  svg.open("g", {});
  svg.element("title", {}, point_description(chart, point));
  if (point.x_interval) {
    draw_error_bar(svg, point.group, plot.at(point.x_interval->low, point.y),
                   plot.at(point.x_interval->high, point.y));
  }
  if (point.y_interval) {
    draw_error_bar(svg, point.group, plot.at(point.x, point.y_interval->low),
                   plot.at(point.x, point.y_interval->high));
  }
  draw_marker(svg, point.group, place.x, place.y, radius, filled);
  if (point.marked) {
    svg.element("circle", {{"class", "line stroke-ink"},
                           {"cx", coordinate(place.x)},
                           {"cy", coordinate(place.y)},
                           {"r", coordinate(kRingRadius)}});
  }
  svg.close();
}

std::string scatter_description(const Scatter& chart, const std::vector<ScatterPoint>& points,
                                const std::vector<std::size_t>& front) {
  std::string text =
      fmt::format("{} points of {} against {}.", points.size(), chart.y.title, chart.x.title);
  const XyExtents extents = point_extents(points);
  if (!points.empty()) {
    text += fmt::format(" From {} to {}, and from {} to {}.", chart.x.text_of(extents.x.low),
                        chart.x.text_of(extents.x.high), chart.y.text_of(extents.y.low),
                        chart.y.text_of(extents.y.high));
  }
  if (front.empty()) return text;
  text += fmt::format(" {}:", chart.front_name);
  for (const std::size_t i : front) {
    text +=
        fmt::format("{} {}", i == front.front() ? "" : ";", point_description(chart, points[i]));
  }
  return text + '.';
}

}  // namespace

Drawing draw(const Scatter& chart, double width) {
  Omitted omitted;
  const std::vector<ScatterPoint> points = clean_points(chart, omitted);
  const std::vector<std::size_t> front = front_of(chart, points);

  Canvas canvas(width);
  XmlWriter& svg = canvas.svg;
  std::vector<LegendEntry> legend;
  for (std::size_t i = 0; i < chart.groups.size(); ++i) {
    legend.push_back({LegendMark::kMarker, i, chart.groups[i]});
  }
  if (!chart.front_name.empty()) legend.push_back({LegendMark::kFront, 0, chart.front_name});
  const Levels levels = chart.levels.shown_on(chart.y, omitted);
  for (LegendEntry& entry : legend_of(levels)) legend.push_back(std::move(entry));
  double top = canvas.draw_heading(chart.heading);
  top = draw_legend(svg, legend, kMargin, top, canvas.inner_width()) + 8;
  XyExtents extents = point_extents(points);
  levels.add_to(extents.y);
  const XyPlot plot = draw_axes(canvas, chart.x, chart.y, extents, top, 2 * kMargin,
                                canvas.narrow() ? kNarrowScatterHeight : kScatterHeight);
  draw_levels(svg, levels, plot.y, plot.box, true);
  FreeSpace space = space_beside(points, plot);
  draw_front(svg, points, front, plot, space);

  // Those of the front last, upon all others, and labelled first.
  std::vector<bool> on_front(points.size());
  for (const std::size_t i : front) on_front[i] = true;
  std::vector<std::size_t> labelled = front;
  if (canvas.narrow() && front.size() > kMostNarrowFront) labelled = {front.front(), front.back()};
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (on_front[i]) continue;
    draw_point(svg, chart, points[i], plot, kOtherRadius, chart.front_name.empty());
    if (chart.label_all || chart.front_name.empty()) labelled.push_back(i);
  }
  for (const std::size_t i : front) draw_point(svg, chart, points[i], plot, kFrontRadius, true);
  const auto is_marked = [&](std::size_t i) { return points[i].marked; };
  for (std::size_t i = 0; i < points.size(); ++i) {
    const bool is_listed = std::find(labelled.begin(), labelled.end(), i) != labelled.end();
    if (is_marked(i) && !is_listed) labelled.push_back(i);
  }
  std::stable_partition(labelled.begin(), labelled.end(), is_marked);
  if (labelled.size() > kMostLabels) labelled.resize(kMostLabels);
  for (const std::size_t i : labelled) {
    if (points[i].label.empty()) continue;
    const std::string label = fitted(points[i].label, kSmallSize, kMostPointLabel);
    const Point mark = plot.at(points[i].x, points[i].y);
    const double radius = points[i].marked ? kRingRadius : kFrontRadius;
    // What is marked is named even where it is crowded, and so are the few of a narrow drawing: a
    // little further away.
    const int tries = points[i].marked || canvas.narrow() ? kFarthest : 1;
    auto place = space.place(mark.x, mark.y, radius, label, kSmallSize);
    for (int times = 2; !place && times <= tries; ++times)
      place = space.place(mark.x, mark.y, times * radius, label, kSmallSize);
    if (!place && points[i].marked) {  // then over others: its halo keeps it legible
      place = FreeSpace(plot.box).place(mark.x, mark.y, radius, label, kSmallSize);
      if (place) {
        space.take({place->x, place->y - kSmallSize, place->x + text_width(label, kSmallSize),
                    place->y + kSmallSize / 4});
      }
    }
    if (!place) continue;
    svg.element("text",
                {{"class", fmt::format("small halo stroke-paper {}{}",
                                       on_front[i] ? "fill-ink" : "fill-soft",
                                       points[i].marked ? " strong" : "")},
                 {"x", place->x},
                 {"y", place->y}},
                label);
  }
  return std::move(canvas).finish(
      chart.heading,
      scatter_description(chart, points, front) + levels.description(chart.y) + omitted.text(),
      plot.end);
}

}  // namespace assay::plot
