#include "plot/distribution.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/statistics.h"
#include "plot/axis_drawing.h"
#include "plot/histogram.h"
#include "plot/marks.h"
#include "plot/style.h"

namespace assay::plot {
namespace {

constexpr double kBarsHeight = 190;
constexpr double kDotsHeight = 56;
constexpr double kBetweenBoth = 8;
constexpr double kOutliersWidth = 96;      // of the area beside the axis, if there are any
constexpr std::size_t kMostOutliers = 60;  // marks drawn there

struct Percentile {
  double share;
  const char* name;
};
constexpr std::array<Percentile, 3> kPercentiles = {{{0.5, "p50"}, {0.9, "p90"}, {0.99, "p99"}}};

void draw_bins(XmlWriter& svg, const std::vector<std::size_t>& counts, const AxisLine& x,
               const AxisLine& y, const std::string& counted) {
  const double wide = std::abs(x.high_end() - x.low_end()) / static_cast<double>(counts.size());
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    const double left = x.low_end() + wide * static_cast<double>(i);
    const double top = y.at(static_cast<double>(counts[i]));
    svg.open("g", {});
    svg.element("title", {}, fmt::format("{} {}", counts[i], counted));
    svg.element("rect", {{"class", fmt::format("bin {}", fill_class(0))},
                         {"x", left + 0.5},
                         {"y", top},
                         {"width", std::max(0.5, wide - 1)},
                         {"height", y.low_end() - top}});
    svg.close();
  }
}

void draw_dots(XmlWriter& svg, const HistogramValues& data, const std::vector<std::size_t>& which,
               const AxisLine& x, const Box& box) {
  // Heights mean nothing: the golden ratio keeps neighbours apart, the same way every time.
  constexpr double kGolden = 0.61803398874989484820;
  std::string path;
  for (std::size_t n = 0; n < which.size(); ++n) {
    if (data.values[which[n]] > data.axis_end) continue;
    const double share = std::fmod(0.5 + kGolden * static_cast<double>(n), 1.0);
    path += fmt::format("M{} {}Z", coordinate(x.at(data.values[which[n]])),
                        coordinate(box.top + 4 + share * (box.bottom - box.top - 8)));
  }
  if (!path.empty()) {
    svg.element("path", {{"class", fmt::format("dots {}", stroke_class(1))}, {"d", path}});
  }
}

// The p50 is the median, as in every table; other percentiles are by nearest rank.
double value_of(const Percentile& percentile, const HistogramValues& data) {
  return percentile.share == 0.5 ? base::median(data.ascending)
                                 : base::quantile_of_sorted(data.ascending, percentile.share);
}

// Lines with their names above them; names that would touch are joined: "p50 p90". Percentiles
// among the outliers have none.
void draw_percentiles(XmlWriter& svg, const Distribution& chart, const HistogramValues& data,
                      const AxisLine& x, double top, double bottom, double label_y,
                      double page_width) {
  constexpr double kApart = 8;
  struct Name {
    std::string text;
    double from;
    double to;  // of its lines
  };
  std::vector<Name> names;
  for (const Percentile& percentile : kPercentiles) {
    const double value = value_of(percentile, data);
    if (value > data.axis_end) continue;
    const double at = x.at(value);
    svg.open("g", {});
    svg.element("title", {}, fmt::format("{}: {}", percentile.name, chart.value.text_of(value)));
    svg.element(
        "line",
        {{"class", "dashes stroke-ink"}, {"x1", at}, {"y1", top}, {"x2", at}, {"y2", bottom}});
    svg.close();
    Name name{percentile.name, at, at};
    const auto half = [](const Name& one) { return text_width(one.text, kSmallSize) / 2; };
    while (!names.empty() &&
           (names.back().from + names.back().to) / 2 + half(names.back()) + kApart >
               (name.from + name.to) / 2 - half(name)) {
      name = {names.back().text + " " + name.text, names.back().from, name.to};
      names.pop_back();
    }
    names.push_back(std::move(name));
  }
  for (const Name& name : names) {
    // Over its lines, but not beyond the page.
    const double half = text_width(name.text, kSmallSize) / 2;
    const double middle = std::clamp((name.from + name.to) / 2, half, page_width - half);
    svg.element("text", {{"class", "small middle fill-soft"}, {"x", middle}, {"y", label_y}},
                name.text);
  }
}

std::string distribution_description(const Distribution& chart, const HistogramValues& data,
                                     std::size_t dots) {
  std::string text = fmt::format("A histogram of {} {} by {}, and the values under it.",
                                 data.values.size(), chart.counted, chart.value.title);
  if (data.values.empty()) return text;
  text += fmt::format(" From {} to {};", chart.value.text_of(data.ascending.front()),
                      chart.value.text_of(data.ascending.back()));
  for (const Percentile& percentile : kPercentiles) {
    text += fmt::format("{} {} {}", percentile.share == 0.5 ? "" : ",", percentile.name,
                        chart.value.text_of(value_of(percentile, data)));
  }
  text += '.';
  if (data.outliers() > 0) {
    text +=
        fmt::format(" {} of them lie beyond the axis, from {} on.", data.outliers(),
                    chart.value.text_of(data.ascending[data.ascending.size() - data.outliers()]));
  }
  if (dots < data.values.size()) {
    text += fmt::format(
        " Dots: {} of the values: the outermost {} at each end, and every n-th of the others.",
        dots, kOutermost);
  }
  return text;
}

// A mark for each outlier, evenly spread in ascending order, and the largest value.
void draw_outliers(XmlWriter& svg, const Distribution& chart, const HistogramValues& data,
                   const Box& area) {
  const std::size_t count = data.outliers();
  if (count == 0) return;
  std::vector<std::size_t> which;
  for (std::size_t i = 0; i < data.values.size(); ++i) {
    if (data.values[i] > data.axis_end) which.push_back(i);
  }
  std::sort(which.begin(), which.end(),
            [&](std::size_t a, std::size_t b) { return data.values[a] < data.values[b]; });
  svg.element("line", {{"class", "dashes stroke-edge"},
                       {"x1", area.left},
                       {"y1", area.top},
                       {"x2", area.left},
                       {"y2", area.bottom}});
  const std::size_t every = count / kMostOutliers + 1;
  for (std::size_t n = (count - 1) % every; n < count; n += every) {
    const double share = count == 1 ? 0.5 : static_cast<double>(n) / static_cast<double>(count - 1);
    const double value = data.values[which[n]];
    svg.open("g", {});
    svg.element("title", {},
                fmt::format("{}{}{}", n + 1 == count ? "most: " : "", chart.value.text_of(value),
                            chart.name_of ? ", " + chart.name_of(data.places[which[n]]) : ""));
    draw_marker(svg, 1, area.left + 10 + share * (area.right - area.left - 20),
                area.bottom - 10 - 0.75 * share * (area.bottom - area.top - 20), 3.5, false);
    svg.close();
  }
  const double width = area.right - area.left - 4;
  svg.element("text", {{"class", "small end fill-soft"}, {"x", area.right}, {"y", area.top - 16}},
              fitted(fmt::format("{} beyond,", count), kSmallSize, width));
  svg.element("text", {{"class", "small end fill-soft"}, {"x", area.right}, {"y", area.top - 3}},
              fitted("up to " + chart.value.text_of(data.ascending.back()), kSmallSize, width));
}

// The least and the largest, by name.
void draw_ends(XmlWriter& svg, const Distribution& chart, const HistogramValues& data,
               const AxisLine& x, double y) {
  const auto [least, most] = std::minmax_element(data.values.begin(), data.values.end());
  for (const auto& end : {least, most}) {
    if (*end > data.axis_end) continue;
    const std::size_t place = data.places[static_cast<std::size_t>(end - data.values.begin())];
    svg.open("g", {});
    svg.element("title", {},
                fmt::format("{}: {}{}", end == least ? "least" : "most", chart.value.text_of(*end),
                            chart.name_of ? ", " + chart.name_of(place) : ""));
    draw_marker(svg, 1, x.at(*end), y, 3.5, false);
    svg.close();
  }
}

}  // namespace

Drawing draw(const Distribution& chart, double width) {
  Omitted omitted;
  const HistogramValues data = histogram_values(chart, omitted);
  Extent extent;
  for (const double value : data.ascending) {
    if (value <= data.axis_end) extent.add(value);
  }
  Canvas canvas(width);
  XmlWriter& svg = canvas.svg;
  AxisLine x(chart.value, extent, canvas.ticks(9));
  const double tick_half = label_width(x) / 2;
  x.lay(0, width);  // provisional: bins depend on its shape only
  const std::size_t bins = bins_for(data, x);
  const std::vector<std::size_t> counts = counts_of(data, x, bins);
  Extent highest;
  for (const std::size_t count : counts) highest.add(static_cast<double>(count));
  const Axis count_axis{.title = chart.counted, .from_zero = true};
  AxisLine y(count_axis, highest, 6);

  const double title_y = canvas.draw_heading(chart.heading) + 4 + kTextSize;
  const double label_y = title_y + 16;
  Box bars{.left = kMargin + std::max(label_width(y) + 8, tick_half),
           .top = label_y + 6,
           .right = width - kMargin - tick_half - (data.outliers() > 0 ? kOutliersWidth : 0)};
  bars.bottom = bars.top + kBarsHeight;
  const Box dots{bars.left, bars.bottom + kBetweenBoth, bars.right,
                 bars.bottom + kBetweenBoth + kDotsHeight};
  x.lay(bars.left, bars.right);
  y.lay(bars.bottom, bars.top);
  const double end =
      draw_x_axis(canvas, chart.value, x, {bars.left, bars.top, bars.right, dots.bottom});
  draw_y_axis(canvas, count_axis, y, bars, title_y);
  draw_bins(svg, counts, x, y, chart.counted);
  const std::vector<std::size_t> which = dotted(data);
  draw_dots(svg, data, which, x, dots);
  if (!data.values.empty()) {
    draw_outliers(svg, chart, data,
                  {width - kMargin - kOutliersWidth, bars.top + 20, width - kMargin, dots.bottom});
    draw_ends(svg, chart, data, x, (dots.top + dots.bottom) / 2);
    draw_percentiles(svg, chart, data, x, bars.top, dots.bottom, label_y, width);
  }
  svg.element("line", {{"class", "edge stroke-edge"},
                       {"x1", bars.left},
                       {"y1", bars.bottom},
                       {"x2", bars.right},
                       {"y2", bars.bottom}});
  return std::move(canvas).finish(
      chart.heading, distribution_description(chart, data, which.size()) + omitted.text(),
      end + kMargin / 2);
}

}  // namespace assay::plot
