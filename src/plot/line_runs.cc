#include "plot/line_runs.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay::plot {

CleanSeries clean_series(const LineSeries& series, const Axis& x, const Axis& y,
                         LeftOut& left_out) {
  std::vector<LinePoint> points;
  for (const LinePoint& point : series.points) {
    if (x.shows(point.x)) {
      points.push_back(point);
    } else {
      ++left_out.values;
    }
  }
  std::stable_sort(points.begin(), points.end(),
                   [](const LinePoint& a, const LinePoint& b) { return a.x < b.x; });
  CleanSeries made{.name = series.name};
  bool connected = false;
  for (const LinePoint& point : points) {
    if (!y.shows(point.y)) {
      ++left_out.values;
      connected = false;
      continue;
    }
    if (!connected) made.runs.emplace_back();
    connected = true;
    made.runs.back().push_back({point.x, point.y, shown_interval(y, point.interval, left_out)});
  }
  return made;
}

XyExtents line_extents(const std::vector<CleanSeries>& all) {
  XyExtents extents;
  for (const CleanSeries& series : all) {
    for (const Run& run : series.runs) {
      for (const LinePoint& point : run) {
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

std::string lines_in_words(const Lines& chart, const std::vector<CleanSeries>& all) {
  std::string words = fmt::format("Lines of {} against {}.", chart.y.title, chart.x.title);
  for (const CleanSeries& series : all) {
    words += fmt::format(" {}:", series.name);
    if (series.runs.empty()) words += " no points";
    if (series.points() > kMostMarkers) {  // nobody listens to thousands
      const LinePoint& first_point = series.runs.front().front();
      const LinePoint& last_point = series.runs.back().back();
      words += fmt::format(" {} points, from {} at {} to {} at {}.", series.points(),
                           chart.y.text_of(first_point.y), chart.x.text_of(first_point.x),
                           chart.y.text_of(last_point.y), chart.x.text_of(last_point.x));
      continue;
    }
    bool first = true;
    for (const Run& run : series.runs) {
      for (const LinePoint& point : run) {
        words += fmt::format("{} {} at {}", first ? "" : ",", chart.y.text_of(point.y),
                             chart.x.text_of(point.x));
        first = false;
        if (!point.interval) continue;
        words += fmt::format(" ({} to {})", chart.y.text_of(point.interval->low),
                             chart.y.text_of(point.interval->high));
      }
    }
    words += '.';
  }
  if (!chart.interval_name.empty()) {
    words += fmt::format(" In parentheses: {}.", chart.interval_name);
  }
  if (chart.reference) words += fmt::format(" A dashed line: {}.", chart.reference->name);
  return words;
}

}  // namespace assay::plot
