#include "plot/intervals.h"

#include <fmt/format.h>

#include <algorithm>

#include "plot/lettering.h"
#include "plot/marks.h"
#include "plot/style.h"
#include "plot/xy_plot.h"

namespace assay::plot {
namespace {

constexpr double kRowPitch = 30;
constexpr double kMostRowLabel = 230;

std::vector<IntervalRow> clean_rows(const Intervals& chart, LeftOut& left_out) {
  std::vector<IntervalRow> rows;
  for (const IntervalRow& row : chart.rows) {
    if (!chart.value.shows(row.centre)) {
      ++left_out.values;
      continue;
    }
    IntervalRow& made = rows.emplace_back(row);
    made.interval = shown_interval(chart.value, row.interval, left_out);
  }
  return rows;
}

std::string row_in_words(const Intervals& chart, const IntervalRow& row) {
  std::string words = fmt::format("{}: {}", row.label, chart.value.text_of(row.centre));
  if (row.interval) {
    words += fmt::format(" ({} to {})", chart.value.text_of(row.interval->low),
                         chart.value.text_of(row.interval->high));
  }
  return words;
}

void draw_row(Svg& svg, const Intervals& chart, const IntervalRow& row, const AxisLine& line,
              double y) {
  svg.element("text", {{"class", "end fill-ink"}, {"x", line.low_end() - 10}, {"y", y + 4}},
              fitted(row.label, kTextSize, kMostRowLabel));
  svg.open("g", {});
  svg.element("title", {}, row_in_words(chart, row));
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

std::string draw(const Intervals& chart) {
  LeftOut left_out;
  const std::vector<IntervalRow> rows = clean_rows(chart, left_out);
  const Levels levels = chart.levels.shown_on(chart.value, left_out);
  Extent extent;
  double labels = 0;
  std::string words = fmt::format("Intervals of {}.", chart.value.title);
  for (const IntervalRow& row : rows) {
    extent.add(row.centre);
    if (row.interval) {
      extent.add(row.interval->low);
      extent.add(row.interval->high);
    }
    labels = std::max(labels, text_width(row.label, kTextSize));
    words += fmt::format(" {}.", row_in_words(chart, row));
  }
  levels.add_to(extent);
  AxisLine line(chart.value, extent, 9);
  const double tick_half = label_room(line) / 2;

  Svg svg;
  double top = draw_heading(svg, chart.heading);
  top = draw_legend(svg, legend_of(levels), kMargin, top, kPageWidth - 2 * kMargin) + 8;
  const Box plot{
      .left = kMargin + std::max(std::min(labels, kMostRowLabel) + 10, tick_half),
      .top = top,
      .right = kPageWidth - kMargin - std::max(tick_half, 8.0),
      .bottom = top + kRowPitch * static_cast<double>(std::max<std::size_t>(1, rows.size()))};
  line.lay(plot.left, plot.right);
  const double end = draw_x_axis(svg, chart.value, line, plot);
  draw_levels(svg, levels, line, plot, false);
  double y = plot.top + kRowPitch / 2;
  for (const IntervalRow& row : rows) {
    draw_row(svg, chart, row, line, y);
    y += kRowPitch;
  }
  return page(chart.heading, words + levels.in_words(chart.value) + left_out.text(),
              end + kMargin / 2, svg);
}

}  // namespace assay::plot
