// The field of a chart with two axes, for lines and for points.
#pragma once

#include <optional>

#include "plot/axis.h"
#include "plot/frame.h"
#include "plot/labels.h"
#include "plot/svg.h"

namespace assay::plot {

struct XyPlot {
  AxisLine x;
  AxisLine y;
  Box box{};       // where data is drawn
  double end = 0;  // of the page

  [[nodiscard]] LabelPlace at(double x_value, double y_value) const {
    return {x.at(x_value), y.at(y_value)};
  }
};

struct XyExtents {
  Extent x;
  Extent y;
};

// Draws both axes from `top` on, leaving `right` free beside them.
XyPlot draw_axes(Svg& svg, const Axis& x, const Axis& y, const XyExtents& extents, double top,
                 double right, double height);

// The interval with its ends in order, when the axis shows both; else it counts as left out.
std::optional<Interval> shown_interval(const Axis& axis, const std::optional<Interval>& interval,
                                       LeftOut& left_out);

}  // namespace assay::plot
