#include "plot/distribution.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "plot/distribution_values.h"
#include "plot/lettering.h"
#include "plot/marks.h"
#include "plot/style.h"

namespace assay::plot {
namespace {

constexpr double kBarsHeight = 190;
constexpr double kDotsHeight = 56;
constexpr double kBetweenBoth = 8;
constexpr double kFarWidth = 96;      // of the zone beside the axis, where there is one
constexpr std::size_t kMostFar = 60;  // marks in it

struct Percentile {
  double share;
  const char* name;
};
constexpr std::array<Percentile, 3> kPercentiles = {{{0.5, "p50"}, {0.9, "p90"}, {0.99, "p99"}}};

void draw_bins(Svg& svg, const std::vector<std::size_t>& counts, const AxisLine& x,
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

void draw_dots(Svg& svg, const CleanValues& clean, const std::vector<std::size_t>& which,
               const AxisLine& x, const Box& box) {
  // Heights say nothing; these spread neighbours as far as can be, and are always the same.
  constexpr double kGolden = 0.61803398874989484820;
  std::string path;
  for (std::size_t n = 0; n < which.size(); ++n) {
    if (clean.values[which[n]] > clean.axis_end) continue;
    const double share = std::fmod(0.5 + kGolden * static_cast<double>(n), 1.0);
    path += fmt::format("M{} {}Z", coordinate(x.at(clean.values[which[n]])),
                        coordinate(box.top + 4 + share * (box.bottom - box.top - 8)));
  }
  if (!path.empty()) {
    svg.element("path", {{"class", fmt::format("dots {}", stroke_class(1))}, {"d", path}});
  }
}

// Lines, and their names above them; names that would touch are one: "p50 p90". What lies beyond
// the axis is told in the zone beside it.
void draw_percentiles(Svg& svg, const Distribution& chart, const CleanValues& clean,
                      const AxisLine& x, double top, double bottom, double label_y) {
  constexpr double kApart = 8;
  struct Name {
    std::string text;
    double from;
    double to;  // of its lines
  };
  std::vector<Name> names;
  for (const Percentile& percentile : kPercentiles) {
    const double value = quantile(clean.ascending, percentile.share);
    if (value > clean.axis_end) continue;
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
    svg.element(
        "text",
        {{"class", "small middle fill-soft"}, {"x", (name.from + name.to) / 2}, {"y", label_y}},
        name.text);
  }
}

std::string distribution_in_words(const Distribution& chart, const CleanValues& clean,
                                  std::size_t dots) {
  std::string words = fmt::format("A histogram of {} {} by {}, and the values under it.",
                                  clean.values.size(), chart.counted, chart.value.title);
  if (clean.values.empty()) return words;
  words += fmt::format(" From {} to {};", chart.value.text_of(clean.ascending.front()),
                       chart.value.text_of(clean.ascending.back()));
  for (const Percentile& percentile : kPercentiles) {
    words += fmt::format("{} {} {}", percentile.share == 0.5 ? "" : ",", percentile.name,
                         chart.value.text_of(quantile(clean.ascending, percentile.share)));
  }
  words += '.';
  if (clean.far() > 0) {
    words +=
        fmt::format(" {} of them lie beyond the axis, from {} on.", clean.far(),
                    chart.value.text_of(clean.ascending[clean.ascending.size() - clean.far()]));
  }
  if (dots < clean.values.size()) {
    words += fmt::format(
        " Dots: {} of the values, the outermost {} at either end and of the others one in so many.",
        dots, kOutermost);
  }
  return words;
}

// What lies beyond the axis: a mark for each, evenly spread in their order, and how far they reach.
void draw_far(Svg& svg, const Distribution& chart, const CleanValues& clean, const Box& zone) {
  const std::size_t far = clean.far();
  if (far == 0) return;
  std::vector<std::size_t> which;
  for (std::size_t i = 0; i < clean.values.size(); ++i) {
    if (clean.values[i] > clean.axis_end) which.push_back(i);
  }
  std::sort(which.begin(), which.end(),
            [&](std::size_t a, std::size_t b) { return clean.values[a] < clean.values[b]; });
  svg.element("line", {{"class", "dashes stroke-edge"},
                       {"x1", zone.left},
                       {"y1", zone.top},
                       {"x2", zone.left},
                       {"y2", zone.bottom}});
  const std::size_t every = far / kMostFar + 1;
  for (std::size_t n = (far - 1) % every; n < far; n += every) {
    const double share = far == 1 ? 0.5 : static_cast<double>(n) / static_cast<double>(far - 1);
    const double value = clean.values[which[n]];
    svg.open("g", {});
    svg.element("title", {},
                fmt::format("{}{}{}", n + 1 == far ? "most: " : "", chart.value.text_of(value),
                            chart.name_of ? ", " + chart.name_of(clean.places[which[n]]) : ""));
    draw_marker(svg, 1, zone.left + 10 + share * (zone.right - zone.left - 20),
                zone.bottom - 10 - 0.75 * share * (zone.bottom - zone.top - 20), 3.5, false);
    svg.close();
  }
  const double room = zone.right - zone.left - 4;
  svg.element("text", {{"class", "small end fill-soft"}, {"x", zone.right}, {"y", zone.top - 16}},
              fitted(fmt::format("{} beyond,", far), kSmallSize, room));
  svg.element("text", {{"class", "small end fill-soft"}, {"x", zone.right}, {"y", zone.top - 3}},
              fitted("up to " + chart.value.text_of(clean.ascending.back()), kSmallSize, room));
}

// The least and the largest, by name.
void draw_ends(Svg& svg, const Distribution& chart, const CleanValues& clean, const AxisLine& x,
               double y) {
  const auto [least, most] = std::minmax_element(clean.values.begin(), clean.values.end());
  for (const auto& end : {least, most}) {
    if (*end > clean.axis_end) continue;
    const std::size_t place = clean.places[static_cast<std::size_t>(end - clean.values.begin())];
    svg.open("g", {});
    svg.element("title", {},
                fmt::format("{}: {}{}", end == least ? "least" : "most", chart.value.text_of(*end),
                            chart.name_of ? ", " + chart.name_of(place) : ""));
    draw_marker(svg, 1, x.at(*end), y, 3.5, false);
    svg.close();
  }
}

}  // namespace

std::string draw(const Distribution& chart) {
  LeftOut left_out;
  const CleanValues clean = clean_values(chart, left_out);
  Extent extent;
  for (const double value : clean.ascending) {
    if (value <= clean.axis_end) extent.add(value);
  }
  AxisLine x(chart.value, extent, 9);
  const double tick_half = label_room(x) / 2;
  x.lay(0, kPageWidth);  // its shape; the place comes when the other axis' labels are known
  const std::size_t bins = bins_for(clean, x);
  const std::vector<std::size_t> counts = counts_of(clean, x, bins);
  Extent highest;
  for (const std::size_t count : counts) highest.add(static_cast<double>(count));
  const Axis count_axis{.title = chart.counted, .from_zero = true};
  AxisLine y(count_axis, highest, 6);

  Svg svg;
  const double title_y = draw_heading(svg, chart.heading) + 4 + kTextSize;
  const double label_y = title_y + 16;
  Box bars{.left = kMargin + std::max(label_room(y) + 8, tick_half),
           .top = label_y + 6,
           .right = kPageWidth - kMargin - tick_half - (clean.far() > 0 ? kFarWidth : 0)};
  bars.bottom = bars.top + kBarsHeight;
  const Box dots{bars.left, bars.bottom + kBetweenBoth, bars.right,
                 bars.bottom + kBetweenBoth + kDotsHeight};
  x.lay(bars.left, bars.right);
  y.lay(bars.bottom, bars.top);
  const double end =
      draw_x_axis(svg, chart.value, x, {bars.left, bars.top, bars.right, dots.bottom});
  draw_y_axis(svg, count_axis, y, bars, title_y);
  draw_bins(svg, counts, x, y, chart.counted);
  const std::vector<std::size_t> which = dotted(clean);
  draw_dots(svg, clean, which, x, dots);
  if (!clean.values.empty()) {
    draw_far(svg, chart, clean,
             {kPageWidth - kMargin - kFarWidth, bars.top + 20, kPageWidth - kMargin, dots.bottom});
    draw_ends(svg, chart, clean, x, (dots.top + dots.bottom) / 2);
    draw_percentiles(svg, chart, clean, x, bars.top, dots.bottom, label_y);
  }
  svg.element("line", {{"class", "edge stroke-edge"},
                       {"x1", bars.left},
                       {"y1", bars.bottom},
                       {"x2", bars.right},
                       {"y2", bars.bottom}});
  return page(chart.heading, distribution_in_words(chart, clean, which.size()) + left_out.text(),
              end + kMargin / 2, svg);
}

}  // namespace assay::plot
