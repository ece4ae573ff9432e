#include "plot/axis_drawing.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay::plot {
namespace {

constexpr double kMostLabelWidth = 110;

// Every n-th label is shown, so that none touches the next.
std::size_t label_stride(const AxisLine& line) {
  constexpr double kBetweenLabels = 10;
  const auto labels = line.labels();
  for (std::size_t stride = 1;; ++stride) {
    bool apart = true;
    for (std::size_t i = stride; i < labels.size(); i += stride) {
      const double distance = line.at(line.ticks()[i]) - line.at(line.ticks()[i - stride]);
      const double half = std::min(text_width(labels[i], kSmallSize), kMostLabelWidth) / 2;
      const double before =
          std::min(text_width(labels[i - stride], kSmallSize), kMostLabelWidth) / 2;
      apart = apart && half + before + kBetweenLabels <= distance;
    }
    if (apart) return stride;
  }
}

}  // namespace

double label_width(const AxisLine& line) {
  double width = 0;
  for (const std::string& label : line.labels()) {
    width = std::max(width, text_width(label, kSmallSize));
  }
  return std::min(width, kMostLabelWidth);
}

double draw_x_axis(Canvas& canvas, const Axis& axis, const AxisLine& line, const Box& plot) {
  for (const double tick : line.ticks()) {
    const double x = line.at(tick);
    canvas.svg.element("line", {{"class", "grid stroke-grid"},
                                {"x1", x},
                                {"y1", plot.top},
                                {"x2", x},
                                {"y2", plot.bottom}});
  }
  const double labels_y = plot.bottom + 6 + kSmallSize;
  const std::size_t stride = label_stride(line);
  for (std::size_t i = 0; i < line.labels().size(); i += stride) {
    canvas.svg.element(
        "text",
        {{"class", "small middle fill-soft"}, {"x", line.at(line.ticks()[i])}, {"y", labels_y}},
        fitted(line.labels()[i], kSmallSize, kMostLabelWidth));
  }
  if (axis.title.empty()) return labels_y + 6;
  const double title_y = labels_y + 8 + kTextSize;
  canvas.svg.element(
      "text", {{"class", "middle fill-ink"}, {"x", (plot.left + plot.right) / 2}, {"y", title_y}},
      fitted(axis.title, kTextSize, plot.right - plot.left));
  return title_y + 6;
}

void draw_y_axis(Canvas& canvas, const Axis& axis, const AxisLine& line, const Box& plot,
                 double title_y) {
  for (std::size_t i = 0; i < line.ticks().size(); ++i) {
    const double y = line.at(line.ticks()[i]);
    canvas.svg.element("line", {{"class", "grid stroke-grid"},
                                {"x1", plot.left},
                                {"y1", y},
                                {"x2", plot.right},
                                {"y2", y}});
    canvas.svg.element("text",
                       {{"class", "small end fill-soft"}, {"x", plot.left - 8}, {"y", y + 4}},
                       fitted(line.labels()[i], kSmallSize, kMostLabelWidth));
  }
  canvas.svg.element("text", {{"class", "fill-ink"}, {"x", kMargin}, {"y", title_y}},
                     fitted(axis.title, kTextSize, canvas.inner_width()));
}

XyPlot draw_axes(Canvas& canvas, const Axis& x, const Axis& y, const XyExtents& extents, double top,
                 double right, double height) {
  const std::size_t most_y_ticks = y.scale == Scale::kLinear ? 8 : 11;
  constexpr double kBesideLabels = 8;
  XyPlot plot{AxisLine(x, extents.x, canvas.ticks(11)), AxisLine(y, extents.y, most_y_ticks)};
  const double title_y = top + kTextSize;
  const double tick_half = label_width(plot.x) / 2;  // labels of ticks may reach past the ends
  plot.box.left = kMargin + std::max(label_width(plot.y) + kBesideLabels, tick_half);
  plot.box.right = canvas.width - std::max(right, kMargin + tick_half);
  plot.box.top = title_y + 14;
  plot.box.bottom = plot.box.top + height;
  plot.x.lay(plot.box.left, plot.box.right);
  plot.y.lay(plot.box.bottom, plot.box.top);
  plot.end = draw_x_axis(canvas, x, plot.x, plot.box) + kMargin / 2;
  draw_y_axis(canvas, y, plot.y, plot.box, title_y);
  // The values at the ends of the axes, for scripts that show values under the pointer.
  const auto ends_of = [](const Axis& axis, const AxisLine& line) {
    return fmt::format("{:.12g} {:.12g} {}", line.shown().low, line.shown().high,
                       axis.scale == Scale::kLinear ? "linear" : "log");
  };
  canvas.svg.element("path",
                     {{"class", "edge stroke-edge"},
                      {"data-x", ends_of(x, plot.x)},
                      {"data-y", ends_of(y, plot.y)},
                      {"d", "M" + coordinate(plot.box.left) + " " + coordinate(plot.box.top) + "V" +
                                coordinate(plot.box.bottom) + "H" + coordinate(plot.box.right)}});
  return plot;
}

std::optional<Interval> shown_interval(const Axis& axis, const std::optional<Interval>& interval,
                                       Omitted& omitted) {
  if (!interval) return std::nullopt;
  if (!axis.shows(interval->low) || !axis.shows(interval->high)) {
    ++omitted.values;
    return std::nullopt;
  }
  return Interval{std::min(interval->low, interval->high), std::max(interval->low, interval->high)};
}

}  // namespace assay::plot
