// Draws axes: grid lines, tick labels, titles; and the plot area between two of them.
#pragma once

#include <optional>

#include "plot/axis.h"
#include "plot/canvas.h"
#include "plot/labels.h"

namespace assay::plot {

// The width of an axis' widest label that is shown.
double label_width(const AxisLine& line);

// Draws grid lines across the plot, labels below it (omitting those that would touch), and the
// axis' title below them; returns the y position below all of it. The line must span the plot.
double draw_x_axis(Canvas& canvas, const Axis& axis, const AxisLine& line, const Box& plot);

// Draws grid lines, labels left of the plot, and the title above them at height `title_y`.
void draw_y_axis(Canvas& canvas, const Axis& axis, const AxisLine& line, const Box& plot,
                 double title_y);

// The plot area of a chart with two axes.
struct XyPlot {
  AxisLine x;
  AxisLine y;
  Box box{};       // where data is drawn
  double end = 0;  // height of the drawing

  [[nodiscard]] Point at(double x_value, double y_value) const {
    return {x.at(x_value), y.at(y_value)};
  }
};

struct XyExtents {
  Extent x;
  Extent y;
};

// Draws both axes from `top` down, leaving `right` free to the right of them.
XyPlot draw_axes(Canvas& canvas, const Axis& x, const Axis& y, const XyExtents& extents, double top,
                 double right, double height);

// The interval with its ends in order if the axis can show both; otherwise counts it as omitted.
std::optional<Interval> shown_interval(const Axis& axis, const std::optional<Interval>& interval,
                                       Omitted& omitted);

}  // namespace assay::plot
