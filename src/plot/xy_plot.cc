#include "plot/xy_plot.h"

#include <fmt/format.h>

#include <algorithm>

#include "plot/lettering.h"

namespace assay::plot {

XyPlot draw_axes(Svg& svg, const Axis& x, const Axis& y, const XyExtents& extents, double top,
                 double right, double height) {
  constexpr std::size_t kMostXTicks = 11;
  const std::size_t most_y_ticks = y.scale == Scale::kLinear ? 8 : 11;
  constexpr double kBesideLabels = 8;
  XyPlot plot{AxisLine(x, extents.x, kMostXTicks), AxisLine(y, extents.y, most_y_ticks)};
  const double title_y = top + kTextSize;
  const double tick_half = label_room(plot.x) / 2;  // labels of ticks may reach past the ends
  plot.box.left = kMargin + std::max(label_room(plot.y) + kBesideLabels, tick_half);
  plot.box.right = kPageWidth - std::max(right, kMargin + tick_half);
  plot.box.top = title_y + 14;
  plot.box.bottom = plot.box.top + height;
  plot.x.lay(plot.box.left, plot.box.right);
  plot.y.lay(plot.box.bottom, plot.box.top);
  plot.end = draw_x_axis(svg, x, plot.x, plot.box) + kMargin / 2;
  draw_y_axis(svg, y, plot.y, plot.box, title_y);
  // What lies between the ends of the axes, for pages whose scripts tell values under a pointer.
  const auto ends_of = [](const Axis& axis, const AxisLine& line) {
    return fmt::format("{:.12g} {:.12g} {}", line.shown().low, line.shown().high,
                       axis.scale == Scale::kLinear ? "linear" : "log");
  };
  svg.element("path",
              {{"class", "edge stroke-edge"},
               {"data-x", ends_of(x, plot.x)},
               {"data-y", ends_of(y, plot.y)},
               {"d", "M" + coordinate(plot.box.left) + " " + coordinate(plot.box.top) + "V" +
                         coordinate(plot.box.bottom) + "H" + coordinate(plot.box.right)}});
  return plot;
}

std::optional<Interval> shown_interval(const Axis& axis, const std::optional<Interval>& interval,
                                       LeftOut& left_out) {
  if (!interval) return std::nullopt;
  if (!axis.shows(interval->low) || !axis.shows(interval->high)) {
    ++left_out.values;
    return std::nullopt;
  }
  return Interval{std::min(interval->low, interval->high), std::max(interval->low, interval->high)};
}

}  // namespace assay::plot
