#include "plot/timeline.h"

#include <fmt/format.h>

#include <algorithm>

#include "plot/axis_drawing.h"
#include "plot/marks.h"
#include "plot/style.h"

namespace assay::plot {
namespace {

constexpr double kLaneHeight = 22;
constexpr double kLanePitch = 34;
constexpr double kMostLaneName = 150;
constexpr double kAboveLane = 14;  // for its name, where there is no space beside it
constexpr double kThinnestSlice = 1;
constexpr std::size_t kMostListed = 12;  // of a lane, in the description

std::vector<Lane> clean_lanes(const Timeline& chart, Omitted& omitted) {
  std::vector<Lane> lanes;
  for (const Lane& lane : chart.lanes) {
    Lane& made = lanes.emplace_back(Lane{.name = lane.name});
    for (const Slice& slice : lane.slices) {
      if (chart.time.shows(slice.from) && chart.time.shows(slice.to) && slice.from <= slice.to) {
        made.slices.push_back(slice);
      } else {
        ++omitted.values;
      }
    }
    for (const Moment& moment : lane.moments) {
      if (chart.time.shows(moment.at)) {
        made.moments.push_back(moment);
      } else {
        ++omitted.values;
      }
    }
  }
  return lanes;
}

Extent extent_of(const std::vector<Lane>& lanes) {
  Extent extent;
  for (const Lane& lane : lanes) {
    for (const Slice& slice : lane.slices) {
      extent.add(slice.from);
      extent.add(slice.to);
    }
    for (const Moment& moment : lane.moments) extent.add(moment.at);
  }
  return extent;
}

std::string timeline_description(const Timeline& chart, const std::vector<Lane>& lanes) {
  std::string text = fmt::format("Lanes along {}.", chart.time.title);
  for (const Lane& lane : lanes) {
    text += fmt::format(" {}:", lane.name);
    std::size_t listed = 0;
    const auto comma = [&] { return listed++ == 0 ? " " : ", "; };
    for (const Slice& slice : lane.slices) {
      if (listed == kMostListed) break;
      text += comma();
      text += fmt::format("{}{}{} to {}", slice.label, slice.label.empty() ? "" : " from ",
                          chart.time.text_of(slice.from), chart.time.text_of(slice.to));
    }
    for (const Moment& moment : lane.moments) {
      if (listed == kMostListed) break;
      text += comma();
      text += fmt::format("{}{}{}", moment.label, moment.label.empty() ? "" : " at ",
                          chart.time.text_of(moment.at));
    }
    const std::size_t more = lane.slices.size() + lane.moments.size() - listed;
    if (more > 0) text += fmt::format(" and {} more", more);
    text += listed == 0 ? " nothing." : ".";
  }
  return text;
}

void draw_slice(XmlWriter& svg, const Timeline& chart, const Slice& slice, std::size_t lane,
                const AxisLine& line, double top, FreeSpace& labels) {
  constexpr double kInside = 10;
  double left = line.at(slice.from);
  double right = line.at(slice.to);
  if (right - left < kThinnestSlice) {
    left = std::min(left, line.high_end() - kThinnestSlice);
    right = left + kThinnestSlice;
  }
  svg.open("g", {});
  svg.element("title", {},
              fmt::format("{}{}{} to {}", slice.label, slice.label.empty() ? "" : ": ",
                          chart.time.text_of(slice.from), chart.time.text_of(slice.to)));
  draw_area(svg, lane, {left, top, right, top + kLaneHeight});
  // Slices of a lane may overlap; their labels do not.
  const double middle = (left + right) / 2;
  const double half = text_width(slice.label, kSmallSize) / 2;
  const Box label{middle - half, top, middle + half, top + kLaneHeight};
  if (!slice.label.empty() && 2 * half + kInside <= right - left && labels.is_free(label)) {
    labels.take(label);
    svg.element(
        "text",
        {{"class", fmt::format("small middle halo {} {}", on_fill_class(lane), stroke_class(lane))},
         {"x", middle},
         {"y", top + kLaneHeight / 2 + 4}},
        slice.label);
  }
  svg.close();
}

void draw_lane(Canvas& canvas, const Timeline& chart, const Lane& lane, std::size_t index,
               const AxisLine& line, double top) {
  XmlWriter& svg = canvas.svg;
  if (canvas.narrow()) {
    svg.element("text", {{"class", "fill-ink"}, {"x", kMargin}, {"y", top - 4}},
                fitted(lane.name, kTextSize, canvas.inner_width()));
  } else {
    svg.element(
        "text",
        {{"class", "end fill-ink"}, {"x", line.low_end() - 10}, {"y", top + kLaneHeight / 2 + 4}},
        fitted(lane.name, kTextSize, kMostLaneName));
  }
  FreeSpace labels({line.low_end(), top, line.high_end(), top + kLaneHeight});
  for (const Slice& slice : lane.slices) draw_slice(svg, chart, slice, index, line, top, labels);
  for (const Moment& moment : lane.moments) {
    svg.open("g", {});
    svg.element("title", {},
                fmt::format("{}{}{}", moment.label, moment.label.empty() ? "" : ": ",
                            chart.time.text_of(moment.at)));
    draw_marker(svg, index, line.at(moment.at), top + kLaneHeight / 2, 5);
    svg.close();
  }
}

}  // namespace

Drawing draw(const Timeline& chart, double width) {
  Omitted omitted;
  const std::vector<Lane> lanes = clean_lanes(chart, omitted);
  Canvas canvas(width);
  const bool above = canvas.narrow();
  AxisLine line(chart.time, extent_of(lanes), canvas.ticks(9));
  double names = 0;
  for (const Lane& lane : lanes) names = std::max(names, text_width(lane.name, kTextSize));
  const double beside = above ? 0 : std::min(names, kMostLaneName) + 10;
  const double tick_half = label_width(line) / 2;
  const double pitch = kLanePitch + (above ? kAboveLane : 0);

  Box plot{.left = kMargin + std::max({beside, tick_half, 6.0}),
           .top = canvas.draw_heading(chart.heading),
           .right = width - kMargin - std::max(tick_half, 6.0)};
  plot.bottom = plot.top + pitch * static_cast<double>(std::max<std::size_t>(1, lanes.size()));
  line.lay(plot.left, plot.right);
  const double end = draw_x_axis(canvas, chart.time, line, plot);
  double top = plot.top + pitch - kLaneHeight - (kLanePitch - kLaneHeight) / 2;
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    draw_lane(canvas, chart, lanes[i], i, line, top);
    top += pitch;
  }
  return std::move(canvas).finish(
      chart.heading, timeline_description(chart, lanes) + omitted.text(), end + kMargin / 2);
}

}  // namespace assay::plot
