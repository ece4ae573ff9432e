#include "plot/lines.h"

#include <fmt/format.h>

#include <algorithm>

#include "plot/lettering.h"
#include "plot/line_runs.h"
#include "plot/marks.h"
#include "plot/style.h"
#include "plot/xy_plot.h"

namespace assay::plot {
namespace {

constexpr double kLinesHeight = 320;
constexpr double kNameRow = 16;      // height of a name beside a line's end
constexpr double kMostName = 170;    // its width
constexpr double kBesideLines = 12;  // between the plot and the names

// Points of the reference wherever the axes show it. Straight on equal scales, else a curve.
Run reference_run(const Lines& chart, const Extent& x) {
  constexpr std::size_t kSteps = 33;
  Run run;
  if (!chart.reference || x.empty()) return run;
  const AxisLine along(chart.x, x, kFewestTicks);
  for (std::size_t i = 0; i < kSteps; ++i) {
    const double at = along.between(x, i, kSteps);
    const double y = chart.reference->at_zero + chart.reference->per_x * at;
    if (chart.y.shows(y)) run.push_back({at, y});
  }
  return run;
}

std::string path_of(const Run& run, const XyPlot& plot) {
  std::string path;
  for (const LinePoint& point : run) {
    const LabelPlace place = plot.at(point.x, point.y);
    path +=
        fmt::format("{}{} {}", path.empty() ? 'M' : 'L', coordinate(place.x), coordinate(place.y));
  }
  return path;
}

void draw_band(Svg& svg, std::size_t series, const Run& stretch, const XyPlot& plot) {
  if (stretch.size() == 1) {  // a band of no width would not be seen
    const LinePoint& point = stretch.front();
    draw_error_bar(svg, series, plot.at(point.x, point.interval->low),
                   plot.at(point.x, point.interval->high));
    return;
  }
  Run around;
  for (const LinePoint& point : stretch) around.push_back({point.x, point.interval->high});
  for (auto point = stretch.rbegin(); point != stretch.rend(); ++point) {
    around.push_back({point->x, point->interval->low});
  }
  svg.element("path", {{"class", fmt::format("band {}", fill_class(series))},
                       {"d", path_of(around, plot) + "Z"}});
}

void draw_intervals(Svg& svg, IntervalStyle style, std::size_t series, const Run& run,
                    const XyPlot& plot) {
  Run stretch;  // consecutive points that have an interval
  for (const LinePoint& point : run) {
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

void draw_series(Svg& svg, const Lines& chart, const CleanSeries& series, std::size_t index,
                 const XyPlot& plot) {
  for (const Run& run : series.runs) {
    if (run.size() > 1) {
      svg.element("path", {{"class", fmt::format("line {}", stroke_class(index))},
                           {"d", path_of(run, plot)}});
    }
  }
  // Of many points a few are marked, for a line is not to be known by its colour alone.
  constexpr std::size_t kMarkersOfMany = 8;
  const std::size_t points = series.points();
  const std::size_t stride = points > kMostMarkers ? points / kMarkersOfMany : 1;
  std::size_t count = stride / 2;
  for (const Run& run : series.runs) {
    for (const LinePoint& point : run) {
      if (++count % stride != 0 && run.size() > 1) continue;
      const LabelPlace place = plot.at(point.x, point.y);
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

// Beside the right end of each line, as near as the others let it.
void draw_names(Svg& svg, const std::vector<LegendEntry>& names, std::vector<double> heights,
                const Box& plot) {
  heights = spread(std::move(heights), kNameRow, plot.top, plot.bottom);
  const double x = plot.right + kBesideLines;
  svg.open("g", {{"class", "key"}});  // where a screen is narrow, a page shows it by itself
  for (std::size_t i = 0; i < names.size(); ++i) {
    svg.open("g", {});
    draw_sample(svg, names[i], x, heights[i]);
    svg.element("text", {{"class", "fill-ink"}, {"x", x + kSampleWidth + 6}, {"y", heights[i] + 4}},
                fitted(names[i].name, kTextSize, kMostName));
    svg.close();
  }
  svg.close();
}

}  // namespace

std::string draw(const Lines& chart) {
  LeftOut left_out;
  std::vector<CleanSeries> all;
  for (const LineSeries& series : chart.series) {
    all.push_back(clean_series(series, chart.x, chart.y, left_out));
  }
  XyExtents extents = line_extents(all);
  const Run reference = reference_run(chart, extents.x);
  for (const LinePoint& point : reference) extents.y.add(point.y);

  std::vector<LegendEntry> names;
  for (std::size_t i = 0; i < all.size(); ++i) names.push_back({Sample::kMarker, i, all[i].name});
  if (chart.reference) names.push_back({Sample::kReference, 0, chart.reference->name});
  if (!chart.interval_name.empty()) {
    const bool band = chart.interval_style == IntervalStyle::kBand;
    names.push_back({band ? Sample::kBand : Sample::kErrorBar, 0, chart.interval_name});
  }
  const double name_width = widest_name(names);

  Svg svg;
  const double top = draw_heading(svg, chart.heading) + 4;
  const double height = std::max(kLinesHeight, kNameRow * static_cast<double>(names.size()));
  const double right = kBesideLines + kSampleWidth + 6 + name_width + kMargin;
  const XyPlot plot = draw_axes(svg, chart.x, chart.y, extents, top, right, height);

  for (std::size_t i = 0; i < all.size(); ++i) {
    for (const Run& run : all[i].runs) draw_intervals(svg, chart.interval_style, i, run, plot);
  }
  if (reference.size() > 1) {
    svg.element("path", {{"class", "dashes stroke-soft"}, {"d", path_of(reference, plot)}});
  }
  std::vector<double> heights;
  for (std::size_t i = 0; i < all.size(); ++i) {
    svg.open("g", {{"data-series", all[i].name}});
    draw_series(svg, chart, all[i], i, plot);
    svg.close();
    heights.push_back(all[i].runs.empty() ? plot.box.bottom
                                          : plot.y.at(all[i].runs.back().back().y));
  }
  if (chart.reference) {
    heights.push_back(reference.empty() ? plot.box.top : plot.y.at(reference.back().y));
  }
  if (!chart.interval_name.empty()) heights.push_back(plot.box.bottom);
  draw_names(svg, names, std::move(heights), plot.box);
  return page(chart.heading, lines_in_words(chart, all) + left_out.text(), plot.end, svg);
}

}  // namespace assay::plot
