#include "plot/lines.h"

#include <fmt/format.h>

#include <algorithm>

#include "plot/axis_drawing.h"
#include "plot/marks.h"
#include "plot/style.h"

namespace assay::plot {
namespace {

constexpr double kLinesHeight = 320;
constexpr double kNarrowLinesHeight = 230;
constexpr double kNameRow = 16;      // height of a name beside a line's end
constexpr double kMostName = 170;    // its width
constexpr double kBesideLines = 12;  // between the plot and the names

// Points that are connected, from left to right.
using Segment = std::vector<LinePoint>;

struct CleanSeries {
  std::string name;
  std::vector<Segment> segments;

  [[nodiscard]] std::size_t points() const {
    std::size_t count = 0;
    for (const Segment& segment : segments) count += segment.size();
    return count;
  }
};

// Lines of more points have few markers and a short description.
constexpr std::size_t kMostMarkers = 60;

CleanSeries clean_series(const LineSeries& series, const Axis& x, const Axis& y, Omitted& omitted) {
  std::vector<LinePoint> points;
  for (const LinePoint& point : series.points) {
    if (x.shows(point.x)) {
      points.push_back(point);
    } else {
      ++omitted.values;
    }
  }
  std::stable_sort(points.begin(), points.end(),
                   [](const LinePoint& a, const LinePoint& b) { return a.x < b.x; });
  CleanSeries made{.name = series.name};
  bool connected = false;
  for (const LinePoint& point : points) {
    if (!y.shows(point.y)) {
      ++omitted.values;
      connected = false;
      continue;
    }
    if (!connected) made.segments.emplace_back();
    connected = true;
    made.segments.back().push_back({point.x, point.y, shown_interval(y, point.interval, omitted)});
  }
  return made;
}

XyExtents line_extents(const std::vector<CleanSeries>& all) {
  XyExtents extents;
  for (const CleanSeries& series : all) {
    for (const Segment& segment : series.segments) {
      for (const LinePoint& point : segment) {
        extents.x.add(point.x);
        extents.y.add(point.y);
        if (!point.interval) continue;
        extents.y.add(point.interval->low);
        extents.y.add(point.interval->high);
      }
    }
  }
  return extents;
}

std::string lines_description(const Lines& chart, const std::vector<CleanSeries>& all) {
  std::string text = fmt::format("Lines of {} against {}.", chart.y.title, chart.x.title);
  for (const CleanSeries& series : all) {
    text += fmt::format(" {}:", series.name);
    if (series.segments.empty()) text += " no points";
    if (series.points() > kMostMarkers) {  // too many to list
      const LinePoint& first_point = series.segments.front().front();
      const LinePoint& last_point = series.segments.back().back();
      text += fmt::format(" {} points, from {} at {} to {} at {}.", series.points(),
                          chart.y.text_of(first_point.y), chart.x.text_of(first_point.x),
                          chart.y.text_of(last_point.y), chart.x.text_of(last_point.x));
      continue;
    }
    bool first = true;
    for (const Segment& segment : series.segments) {
      for (const LinePoint& point : segment) {
        text += fmt::format("{} {} at {}", first ? "" : ",", chart.y.text_of(point.y),
                            chart.x.text_of(point.x));
        first = false;
        if (!point.interval) continue;
        text += fmt::format(" ({} to {})", chart.y.text_of(point.interval->low),
                            chart.y.text_of(point.interval->high));
      }
    }
    text += '.';
  }
  if (!chart.interval_name.empty()) {
    text += fmt::format(" In parentheses: {}.", chart.interval_name);
  }
  if (chart.reference) text += fmt::format(" A dashed line: {}.", chart.reference->name);
  return text;
}

// Points of the reference wherever the axes show it. Straight on equal scales, else a curve.
Segment reference_points(const Lines& chart, const Extent& x) {
  constexpr std::size_t kSteps = 33;
  Segment segment;
  if (!chart.reference || x.empty()) return segment;
  const AxisLine along(chart.x, x, kFewestTicks);
  for (std::size_t i = 0; i < kSteps; ++i) {
    const double at = along.between(x, i, kSteps);
    const double y = chart.reference->at_zero + chart.reference->per_x * at;
    if (chart.y.shows(y)) segment.push_back({at, y});
  }
  return segment;
}

std::string path_of(const Segment& segment, const XyPlot& plot) {
  std::string path;
  for (const LinePoint& point : segment) {
    const Point place = plot.at(point.x, point.y);
    path +=
        fmt::format("{}{} {}", path.empty() ? 'M' : 'L', coordinate(place.x), coordinate(place.y));
  }
  return path;
}

void draw_band(XmlWriter& svg, std::size_t series, const Segment& stretch, const XyPlot& plot) {
  if (stretch.size() == 1) {  // a band of no width would not be seen
    const LinePoint& point = stretch.front();
    draw_error_bar(svg, series, plot.at(point.x, point.interval->low),
                   plot.at(point.x, point.interval->high));
    return;
  }
  Segment around;
  for (const LinePoint& point : stretch) around.push_back({point.x, point.interval->high});
  for (auto point = stretch.rbegin(); point != stretch.rend(); ++point) {
    around.push_back({point->x, point->interval->low});
  }
  svg.element("path", {{"class", fmt::format("band {}", fill_class(series))},
                       {"d", path_of(around, plot) + "Z"}});
}

void draw_intervals(XmlWriter& svg, IntervalStyle style, std::size_t series, const Segment& segment,
                    const XyPlot& plot) {
  Segment stretch;  // consecutive points that have an interval
  for (const LinePoint& point : segment) {
    if (point.interval && style == IntervalStyle::kErrorBars) {
      draw_band(svg, series, {point}, plot);
    } else if (point.interval) {
      stretch.push_back(point);
    } else if (!stretch.empty()) {
      draw_band(svg, series, stretch, plot);
      stretch.clear();
    }
  }
  if (!stretch.empty()) draw_band(svg, series, stretch, plot);
}

void draw_series(XmlWriter& svg, const Lines& chart, const CleanSeries& series, std::size_t index,
                 const XyPlot& plot) {
  for (const Segment& segment : series.segments) {
    if (segment.size() > 1) {
      svg.element("path", {{"class", fmt::format("line {}", stroke_class(index))},
                           {"d", path_of(segment, plot)}});
    }
  }
  // Of many points a few are marked: lines must not differ by colour alone.
  constexpr std::size_t kMarkersOfMany = 8;
  const std::size_t points = series.points();
  const std::size_t stride = points > kMostMarkers ? points / kMarkersOfMany : 1;
  std::size_t count = stride / 2;
  for (const Segment& segment : series.segments) {
    for (const LinePoint& point : segment) {
      if (++count % stride != 0 && segment.size() > 1) continue;
      const Point place = plot.at(point.x, point.y);
      svg.open("g", {});
      svg.element("title", {},
                  fmt::format("{}: {} at {}", series.name, chart.y.text_of(point.y),
                              chart.x.text_of(point.x)));
      draw_marker(svg, index, place.x, place.y);
      svg.close();
    }
  }
}

double widest_name(const std::vector<LegendEntry>& names) {
  double width = 0;
  for (const LegendEntry& entry : names) width = std::max(width, text_width(entry.name, kTextSize));
  return std::min(width, kMostName);
}

// Beside the right end of each line, as near as the others allow.
void draw_names(XmlWriter& svg, const std::vector<LegendEntry>& names, std::vector<double> heights,
                const Box& plot) {
  heights = spread(std::move(heights), kNameRow, plot.top, plot.bottom);
  const double x = plot.right + kBesideLines;
  for (std::size_t i = 0; i < names.size(); ++i) {
    draw_sample(svg, names[i], x, heights[i]);
    svg.element("text", {{"class", "fill-ink"}, {"x", x + kSampleWidth + 6}, {"y", heights[i] + 4}},
                fitted(names[i].name, kTextSize, kMostName));
  }
}

std::vector<LegendEntry> names_of(const Lines& chart) {
  std::vector<LegendEntry> names;
  for (std::size_t i = 0; i < chart.series.size(); ++i) {
    names.push_back({LegendMark::kMarker, i, chart.series[i].name});
  }
  if (chart.reference) names.push_back({LegendMark::kReference, 0, chart.reference->name});
  if (!chart.interval_name.empty()) {
    const bool band = chart.interval_style == IntervalStyle::kBand;
    names.push_back({band ? LegendMark::kBand : LegendMark::kErrorBar, 0, chart.interval_name});
  }
  return names;
}

}  // namespace

Drawing draw(const Lines& chart, double width) {
  Omitted omitted;
  std::vector<CleanSeries> all;
  for (const LineSeries& series : chart.series) {
    all.push_back(clean_series(series, chart.x, chart.y, omitted));
  }
  XyExtents extents = line_extents(all);
  const Segment reference = reference_points(chart, extents.x);
  for (const LinePoint& point : reference) extents.y.add(point.y);
  const std::vector<LegendEntry> names = names_of(chart);

  Canvas canvas(width);
  XmlWriter& svg = canvas.svg;
  double top = canvas.draw_heading(chart.heading) + 4;
  double right = kMargin;
  double height = kNarrowLinesHeight;
  if (canvas.narrow()) {
    top = draw_legend(svg, names, kMargin, top, canvas.inner_width()) + 8;
  } else {
    height = std::max(kLinesHeight, kNameRow * static_cast<double>(names.size()));
    right = kBesideLines + kSampleWidth + 6 + widest_name(names) + kMargin;
  }
  const XyPlot plot = draw_axes(canvas, chart.x, chart.y, extents, top, right, height);

  for (std::size_t i = 0; i < all.size(); ++i) {
    for (const Segment& segment : all[i].segments) {
      draw_intervals(svg, chart.interval_style, i, segment, plot);
    }
  }
  if (reference.size() > 1) {
    svg.element("path", {{"class", "dashes stroke-soft"}, {"d", path_of(reference, plot)}});
  }
  std::vector<double> heights;
  for (std::size_t i = 0; i < all.size(); ++i) {
    svg.open("g", {{"data-series", all[i].name}});
    draw_series(svg, chart, all[i], i, plot);
    svg.close();
    heights.push_back(all[i].segments.empty() ? plot.box.bottom
                                              : plot.y.at(all[i].segments.back().back().y));
  }
  if (chart.reference) {
    heights.push_back(reference.empty() ? plot.box.top : plot.y.at(reference.back().y));
  }
  if (!chart.interval_name.empty()) heights.push_back(plot.box.bottom);
  if (!canvas.narrow()) draw_names(svg, names, std::move(heights), plot.box);
  return std::move(canvas).finish(chart.heading, lines_description(chart, all) + omitted.text(),
                                  plot.end);
}

}  // namespace assay::plot
