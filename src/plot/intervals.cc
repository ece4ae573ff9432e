#include "plot/intervals.h"

#include <fmt/format.h>

#include <algorithm>

#include "plot/axis_drawing.h"
#include "plot/marks.h"
#include "plot/style.h"

namespace assay::plot {
namespace {

constexpr double kRowPitch = 30;
constexpr double kMostRowLabel = 230;
constexpr double kAboveRow = 16;  // for its label, where there is no space beside it

std::vector<IntervalRow> clean_rows(const Intervals& chart, Omitted& omitted) {
  std::vector<IntervalRow> rows;
  for (const IntervalRow& row : chart.rows) {
    if (!chart.value.shows(row.centre)) {
      ++omitted.values;
      continue;
    }
    IntervalRow& made = rows.emplace_back(row);
    made.interval = shown_interval(chart.value, row.interval, omitted);
  }
  return rows;
}

std::string row_description(const Intervals& chart, const IntervalRow& row) {
  std::string text = fmt::format("{}: {}", row.label, chart.value.text_of(row.centre));
  if (row.interval) {
    text += fmt::format(" ({} to {})", chart.value.text_of(row.interval->low),
                        chart.value.text_of(row.interval->high));
  }
  return text;
}

void draw_row(XmlWriter& svg, const Intervals& chart, const IntervalRow& row, const AxisLine& line,
              double y) {
  svg.open("g", {});
  svg.element("title", {}, row_description(chart, row));
  if (row.interval) {
    svg.element("line", {{"class", fmt::format("line {}", stroke_class(row.group))},
                         {"x1", line.at(row.interval->low)},
                         {"y1", y},
                         {"x2", line.at(row.interval->high)},
                         {"y2", y}});
    draw_error_bar(svg, row.group, {line.at(row.interval->low), y},
                   {line.at(row.interval->high), y});
  }
  draw_marker(svg, row.group, line.at(row.centre), y, 5);
  svg.close();
}

}  // namespace

Drawing draw(const Intervals& chart, double width) {
  Omitted omitted;
  const std::vector<IntervalRow> rows = clean_rows(chart, omitted);
  const Levels levels = chart.levels.shown_on(chart.value, omitted);
  Extent extent;
  double labels = 0;
  std::string text = fmt::format("Intervals of {}.", chart.value.title);
  for (const IntervalRow& row : rows) {
    extent.add(row.centre);
    if (row.interval) {
      extent.add(row.interval->low);
      extent.add(row.interval->high);
    }
    labels = std::max(labels, text_width(row.label, kTextSize));
    text += fmt::format(" {}.", row_description(chart, row));
  }
  levels.add_to(extent);
  Canvas canvas(width);
  AxisLine line(chart.value, extent, canvas.ticks(9));
  const double tick_half = label_width(line) / 2;

  double top = canvas.draw_heading(chart.heading);
  top = draw_legend(canvas.svg, legend_of(levels), kMargin, top, canvas.inner_width()) + 8;
  const bool above = canvas.narrow();
  const double beside = above ? 0 : std::min(labels, kMostRowLabel) + 10;
  const double pitch = kRowPitch + (above ? kAboveRow : 0);
  const Box plot{
      .left = kMargin + std::max({beside, tick_half, 8.0}),
      .top = top,
      .right = width - kMargin - std::max(tick_half, 8.0),
      .bottom = top + pitch * static_cast<double>(std::max<std::size_t>(1, rows.size()))};
  line.lay(plot.left, plot.right);
  const double end = draw_x_axis(canvas, chart.value, line, plot);
  draw_levels(canvas.svg, levels, line, plot, false);
  double y = plot.top + pitch - kRowPitch / 2;
  for (const IntervalRow& row : rows) {
    if (above) {
      // With a background, so that lines of the chart do not cross the label.
      const std::string label = fitted(row.label, kTextSize, canvas.inner_width());
      canvas.svg.element("rect", {{"class", "fill-paper"},
                                  {"x", kMargin - 2},
                                  {"y", y - 12 - kTextSize},
                                  {"width", text_width(label, kTextSize) + 6},
                                  {"height", kTextSize + 4}});
      canvas.svg.element("text", {{"class", "fill-ink"}, {"x", kMargin}, {"y", y - 12}}, label);
    } else {
      canvas.svg.element("text", {{"class", "end fill-ink"}, {"x", plot.left - 10}, {"y", y + 4}},
                         fitted(row.label, kTextSize, kMostRowLabel));
    }
    draw_row(canvas.svg, chart, row, line, y);
    y += pitch;
  }
  return std::move(canvas).finish(
      chart.heading, text + levels.description(chart.value) + omitted.text(), end + kMargin / 2);
}

}  // namespace assay::plot
