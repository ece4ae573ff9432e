#include "plot/scatter.h"

#include <fmt/format.h>

#include <utility>

#include "base/pareto.h"
#include "plot/lettering.h"
#include "plot/marks.h"
#include "plot/style.h"
#include "plot/xy_plot.h"

namespace assay::plot {
namespace {

constexpr double kScatterHeight = 360;
constexpr double kFrontRadius = 5;
constexpr double kOtherRadius = 3.5;
constexpr double kMostPointLabel = 200;
// More would not be read, and looking for places takes time.
constexpr std::size_t kMostLabels = 100;

std::vector<ScatterPoint> clean_points(const Scatter& chart, LeftOut& left_out) {
  std::vector<ScatterPoint> points;
  for (const ScatterPoint& point : chart.points) {
    if (!chart.x.shows(point.x) || !chart.y.shows(point.y)) {
      ++left_out.values;
      continue;
    }
    ScatterPoint& made = points.emplace_back(point);
    made.x_interval = shown_interval(chart.x, point.x_interval, left_out);
    made.y_interval = shown_interval(chart.y, point.y_interval, left_out);
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

// Along the front in steps: to the right at a point's height, then down to the next. What a point
// on the front leaves to choose from is above and to the right of it.
void draw_front(Svg& svg, const std::vector<ScatterPoint>& points,
                const std::vector<std::size_t>& front, const XyPlot& plot, Room& room) {
  constexpr double kHalf = 1.5;
  std::string path;
  LabelPlace last;
  for (const std::size_t i : front) {
    const LabelPlace place = plot.at(points[i].x, points[i].y);
    if (path.empty()) {
      path = fmt::format("M{} {}", coordinate(place.x), coordinate(place.y));
    } else {
      path += fmt::format("H{}V{}", coordinate(place.x), coordinate(place.y));
      room.take({last.x, last.y - kHalf, place.x, last.y + kHalf});
      room.take({place.x - kHalf, last.y, place.x + kHalf, place.y});
    }
    last = place;
  }
  if (front.size() > 1) svg.element("path", {{"class", "line front stroke-ink"}, {"d", path}});
}

// Where neither points nor their error bars are.
Room room_beside(const std::vector<ScatterPoint>& points, const XyPlot& plot) {
  constexpr double kCap = 3;
  Room room(plot.box);
  for (const ScatterPoint& point : points) {
    const LabelPlace place = plot.at(point.x, point.y);
    room.take({place.x - kFrontRadius, place.y - kFrontRadius, place.x + kFrontRadius,
               place.y + kFrontRadius});
    if (point.x_interval) {
      room.take({plot.x.at(point.x_interval->low), place.y - kCap,
                 plot.x.at(point.x_interval->high), place.y + kCap});
    }
    if (point.y_interval) {
      room.take({place.x - kCap, plot.y.at(point.y_interval->high), place.x + kCap,
                 plot.y.at(point.y_interval->low)});
    }
  }
  return room;
}

std::string point_in_words(const Scatter& chart, const ScatterPoint& point) {
  return fmt::format("{}{}{} and {}", point.label, point.label.empty() ? "" : ": ",
                     chart.x.text_of(point.x), chart.y.text_of(point.y));
}

void draw_point(Svg& svg, const Scatter& chart, const ScatterPoint& point, const XyPlot& plot,
                double radius, bool filled) {
  const LabelPlace place = plot.at(point.x, point.y);
  svg.open("g", {});
  svg.element("title", {}, point_in_words(chart, point));
  if (point.x_interval) {
    draw_error_bar(svg, point.group, plot.at(point.x_interval->low, point.y),
                   plot.at(point.x_interval->high, point.y));
  }
  if (point.y_interval) {
    draw_error_bar(svg, point.group, plot.at(point.x, point.y_interval->low),
                   plot.at(point.x, point.y_interval->high));
  }
  draw_marker(svg, point.group, place.x, place.y, radius, filled);
  svg.close();
}

std::string scatter_in_words(const Scatter& chart, const std::vector<ScatterPoint>& points,
                             const std::vector<std::size_t>& front) {
  std::string words =
      fmt::format("{} points of {} against {}.", points.size(), chart.y.title, chart.x.title);
  const XyExtents extents = point_extents(points);
  if (!points.empty()) {
    words += fmt::format(" From {} to {}, and from {} to {}.", chart.x.text_of(extents.x.low),
                         chart.x.text_of(extents.x.high), chart.y.text_of(extents.y.low),
                         chart.y.text_of(extents.y.high));
  }
  if (front.empty()) return words;
  words += fmt::format(" {}:", chart.front_name);
  for (const std::size_t i : front) {
    words += fmt::format("{} {}", i == front.front() ? "" : ";", point_in_words(chart, points[i]));
  }
  return words + '.';
}

}  // namespace

std::string draw(const Scatter& chart) {
  LeftOut left_out;
  const std::vector<ScatterPoint> points = clean_points(chart, left_out);
  const std::vector<std::size_t> front = front_of(chart, points);

  Svg svg;
  std::vector<LegendEntry> legend;
  for (std::size_t i = 0; i < chart.groups.size(); ++i) {
    legend.push_back({Sample::kMarker, i, chart.groups[i]});
  }
  if (!chart.front_name.empty()) legend.push_back({Sample::kFront, 0, chart.front_name});
  const Levels levels = chart.levels.shown_on(chart.y, left_out);
  for (LegendEntry& entry : legend_of(levels)) legend.push_back(std::move(entry));
  double top = draw_heading(svg, chart.heading);
  top = draw_legend(svg, legend, kMargin, top, kPageWidth - 2 * kMargin) + 8;
  XyExtents extents = point_extents(points);
  levels.add_to(extents.y);
  const XyPlot plot = draw_axes(svg, chart.x, chart.y, extents, top, 2 * kMargin, kScatterHeight);
  draw_levels(svg, levels, plot.y, plot.box, true);
  Room room = room_beside(points, plot);
  draw_front(svg, points, front, plot, room);

  // Those of the front last, upon all others, and labelled first.
  std::vector<bool> on_front(points.size());
  for (const std::size_t i : front) on_front[i] = true;
  std::vector<std::size_t> labelled = front;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (on_front[i]) continue;
    draw_point(svg, chart, points[i], plot, kOtherRadius, chart.front_name.empty());
    if (chart.label_all || chart.front_name.empty()) labelled.push_back(i);
  }
  for (const std::size_t i : front) draw_point(svg, chart, points[i], plot, kFrontRadius, true);
  if (labelled.size() > kMostLabels) labelled.resize(kMostLabels);
  for (const std::size_t i : labelled) {
    if (points[i].label.empty()) continue;
    const std::string label = fitted(points[i].label, kSmallSize, kMostPointLabel);
    const LabelPlace mark = plot.at(points[i].x, points[i].y);
    const auto place = room.place(mark.x, mark.y, kFrontRadius, label, kSmallSize);
    if (!place) continue;
    svg.element("text",
                {{"class", fmt::format("small halo stroke-paper {}",
                                       on_front[i] ? "fill-ink" : "fill-soft")},
                 {"x", place->x},
                 {"y", place->y}},
                label);
  }
  return page(chart.heading,
              scatter_in_words(chart, points, front) + levels.in_words(chart.y) + left_out.text(),
              plot.end, svg);
}

}  // namespace assay::plot
