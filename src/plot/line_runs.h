// The points of lines as far as axes show them, in runs, and what they say in words.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "plot/lines.h"
#include "plot/xy_plot.h"

namespace assay::plot {

using Run = std::vector<LinePoint>;  // points that are connected, from left to right

struct CleanSeries {
  std::string name;
  std::vector<Run> runs;

  [[nodiscard]] std::size_t points() const {
    std::size_t count = 0;
    for (const Run& run : runs) count += run.size();
    return count;
  }
};

// Points that a line may have to be marked, and told, one by one.
inline constexpr std::size_t kMostMarkers = 60;

CleanSeries clean_series(const LineSeries& series, const Axis& x, const Axis& y, LeftOut& left_out);

XyExtents line_extents(const std::vector<CleanSeries>& all);

std::string lines_in_words(const Lines& chart, const std::vector<CleanSeries>& all);

}  // namespace assay::plot
