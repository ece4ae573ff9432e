// Lines through points: tokens per second against GPUs, with the ideal and an interval.
//
//   const std::string svg = draw(Lines{
//       .heading = {"Scaling"},
//       .x = {.title = "GPUs", .scale = Scale::kLog2},
//       .y = {.title = "tokens/s", .scale = Scale::kLog10},
//       .series = {{"H100 SXM", {{8, 4.1e5, Interval{3.9e5, 4.3e5}}, {16, 8.0e5}}}},
//       .reference = Reference{.name = "ideal", .per_x = 51250},
//       .interval_name = "80 % interval"});
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plot/axis.h"
#include "plot/canvas.h"

namespace assay::plot {

struct LinePoint {
  double x = 0;
  double y = 0;
  std::optional<Interval> interval = std::nullopt;  // of y
};

struct LineSeries {
  std::string name;
  std::vector<LinePoint> points;  // in any order; drawn from left to right
};

// A dashed line, y = at_zero + per_x · x.
struct Reference {
  std::string name;
  double per_x = 0;
  double at_zero = 0;
};

enum class IntervalStyle : std::uint8_t { kBand, kErrorBars };

struct Lines {
  Heading heading;
  Axis x;
  Axis y;
  std::vector<LineSeries> series;
  std::optional<Reference> reference = std::nullopt;
  IntervalStyle interval_style = IntervalStyle::kBand;
  std::string interval_name = {};
};

// Points that an axis cannot show are left out, and the description says how many; a line is
// interrupted where a point's y is missing.
Drawing draw(const Lines& chart, double width = kPageWidth);

}  // namespace assay::plot
