#include "plot/stacked_bars.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "plot/axis_drawing.h"
#include "plot/marks.h"
#include "plot/style.h"

namespace assay::plot {
namespace {

constexpr double kBarHeight = 34;
constexpr double kBarPitch = 48;
constexpr double kBesideBar = 8;
constexpr double kMostBarLabel = 220;
constexpr double kMostSum = 120;
constexpr double kNarrowMostSum = 80;
constexpr double kAboveBar = 16;  // for its label, where there is no space beside it
constexpr std::size_t kMostBarTicks = 8;

// A bar without what cannot be drawn: a value for each part.
struct CleanBar {
  std::string label;
  std::vector<double> values;
  double total = 0;
};

std::vector<CleanBar> clean_bars(const StackedBars& chart, const Axis& axis, Omitted& omitted) {
  std::vector<CleanBar> bars;
  for (const Bar& bar : chart.bars) {
    CleanBar& made = bars.emplace_back(CleanBar{.label = bar.label});
    made.values.resize(chart.parts.size());
    for (std::size_t part = 0; part < bar.values.size(); ++part) {
      const double value = bar.values[part];
      if (part < made.values.size() && axis.shows(value) && value >= 0) {
        made.values[part] = value;
      } else {
        ++omitted.values;
      }
    }
    made.total = std::accumulate(made.values.begin(), made.values.end(), 0.0);
  }
  return bars;
}

std::string percent(double value, double total) {
  const double share = total > 0 ? 100 * value / total : 0;
  return share > 0 && share < 1 ? "<1 %" : fmt::format("{:.0f} %", share);
}

std::string bars_description(const StackedBars& chart, const Axis& axis,
                             const std::vector<CleanBar>& bars) {
  std::string text = fmt::format("Horizontal stacked bars of {}.", axis.title);
  if (bars.empty()) text += " There are no bars.";
  for (const CleanBar& bar : bars) {
    text += fmt::format(" {}: {} in all", bar.label, axis.text_of(bar.total));
    for (std::size_t part = 0; part < bar.values.size(); ++part) {
      text += fmt::format("{} {} {} ({})", part == 0 ? ", of which" : ",", chart.parts[part],
                          axis.text_of(bar.values[part]), percent(bar.values[part], bar.total));
    }
    text += '.';
  }
  return text;
}

// Value and percentage on one line, on two, or the percentage alone, whichever fits.
void draw_segment_label(XmlWriter& svg, std::size_t part, const Box& box, const std::string& value,
                        const std::string& share) {
  constexpr double kInside = 8;
  constexpr double kLine = 13;
  const auto fits = [&](const std::string& text) {
    return text_width(text, kSmallSize) <= box.right - box.left - kInside;
  };
  std::vector<std::string> lines = {fmt::format("{} · {}", value, share)};
  if (!fits(lines[0])) lines = {value, share};
  if (!fits(lines[0])) lines = {share};
  if (!fits(share)) return;
  const std::string classes =
      fmt::format("small middle halo {} {}", on_fill_class(part), stroke_class(part));
  double y = (box.top + box.bottom) / 2 + 4 - kLine / 2 * static_cast<double>(lines.size() - 1);
  for (const std::string& line : lines) {
    svg.element("text", {{"class", classes}, {"x", (box.left + box.right) / 2}, {"y", y}}, line);
    y += kLine;
  }
}

void draw_bar(Canvas& canvas, const StackedBars& chart, const Axis& axis, const CleanBar& bar,
              const AxisLine& line, double top, double most_sum) {
  XmlWriter& svg = canvas.svg;
  const double bottom = top + kBarHeight;
  const double text_y = (top + bottom) / 2 + 4;
  if (canvas.narrow()) {
    svg.element("text", {{"class", "fill-ink"}, {"x", kMargin}, {"y", top - 5}},
                fitted(bar.label, kTextSize, canvas.inner_width()));
  } else {
    svg.element("text", {{"class", "end fill-ink"}, {"x", line.at(0) - kBesideBar}, {"y", text_y}},
                fitted(bar.label, kTextSize, kMostBarLabel));
  }
  double before = 0;
  for (std::size_t part = 0; part < bar.values.size(); ++part) {
    const double value = bar.values[part];
    if (value == 0) continue;
    const Box box{line.at(before), top, line.at(before + value), bottom};
    const std::string value_text = axis.text_of(value);
    const std::string share = percent(value, bar.total);
    svg.open("g", {});
    svg.element("title", {},
                fmt::format("{}, {}: {} ({})", bar.label, chart.parts[part], value_text, share));
    draw_area(svg, part, box);
    draw_segment_label(svg, part, box, value_text, share);
    svg.close();
    before += value;
  }
  svg.element("text",
              {{"class", "strong fill-ink"}, {"x", line.at(before) + kBesideBar}, {"y", text_y}},
              fitted(axis.text_of(bar.total), kTextSize * kBold, most_sum));
}

double widest(const std::vector<CleanBar>& bars, double size, const auto& text_of) {
  double width = 0;
  for (const CleanBar& bar : bars) width = std::max(width, text_width(text_of(bar), size));
  return width;
}

}  // namespace

Drawing draw(const StackedBars& chart, double width) {
  Axis axis = chart.value;
  axis.scale = Scale::kLinear;
  axis.from_zero = true;
  Omitted omitted;
  const std::vector<CleanBar> bars = clean_bars(chart, axis, omitted);

  Extent totals;
  for (const CleanBar& bar : bars) totals.add(bar.total);
  Canvas canvas(width);
  const bool above = canvas.narrow();
  AxisLine line(axis, totals, canvas.ticks(kMostBarTicks));
  const auto label_of = [](const CleanBar& bar) { return bar.label; };
  const auto sum_of = [&](const CleanBar& bar) { return axis.text_of(bar.total); };
  const double most_sum = above ? kNarrowMostSum : kMostSum;
  const double labels =
      above ? 0 : std::min(widest(bars, kTextSize, label_of), kMostBarLabel) + kBesideBar;
  const double sums = std::min(widest(bars, kTextSize * kBold, sum_of), most_sum);
  const double tick_half = label_width(line) / 2;  // labels of ticks may reach past the plot's ends
  Box plot{.left = kMargin + std::max(labels, tick_half),
           .right = width - kMargin - std::max(sums + kBesideBar, tick_half)};
  line.lay(plot.left, plot.right);

  std::vector<LegendEntry> legend;
  for (std::size_t part = 0; part < chart.parts.size(); ++part) {
    legend.push_back({LegendMark::kArea, part, chart.parts[part]});
  }
  plot.top = canvas.draw_heading(chart.heading);
  plot.top = draw_legend(canvas.svg, legend, kMargin, plot.top, canvas.inner_width()) + 8;
  const double pitch = kBarPitch + (above ? kAboveBar : 0);
  plot.bottom = plot.top + pitch * static_cast<double>(std::max<std::size_t>(1, bars.size()));
  const double end = draw_x_axis(canvas, axis, line, plot);
  double top = plot.top + pitch - kBarHeight - (kBarPitch - kBarHeight) / 2;
  for (const CleanBar& bar : bars) {
    draw_bar(canvas, chart, axis, bar, line, top, most_sum);
    top += pitch;
  }
  canvas.svg.element("line", {{"class", "edge stroke-edge"},
                              {"x1", plot.left},
                              {"y1", plot.top},
                              {"x2", plot.left},
                              {"y2", plot.bottom}});
  return std::move(canvas).finish(
      chart.heading, bars_description(chart, axis, bars) + omitted.text(), end + kMargin / 2);
}

}  // namespace assay::plot
