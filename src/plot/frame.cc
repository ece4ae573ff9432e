#include "plot/frame.h"

#include <fmt/format.h>

#include <algorithm>

#include "plot/lettering.h"
#include "plot/style.h"

namespace assay::plot {
namespace {

constexpr double kMostLabelRoom = 130;

// Every how many labels must be kept for none to touch the next.
std::size_t label_stride(const AxisLine& line) {
  constexpr double kBetweenLabels = 10;
  const auto labels = line.labels();
  for (std::size_t stride = 1;; ++stride) {
    bool apart = true;
    for (std::size_t i = stride; i < labels.size(); i += stride) {
      const double distance = line.at(line.ticks()[i]) - line.at(line.ticks()[i - stride]);
      const double half = std::min(text_width(labels[i], kSmallSize), kMostLabelRoom) / 2;
      const double before =
          std::min(text_width(labels[i - stride], kSmallSize), kMostLabelRoom) / 2;
      apart = apart && half + before + kBetweenLabels <= distance;
    }
    if (apart) return stride;
  }
}

}  // namespace

std::string page(const Heading& heading, std::string_view description, double height,
                 const Svg& body) {
  Svg svg;
  svg.open("svg",
           {{"xmlns", "http://www.w3.org/2000/svg"},
            {"class", kDrawingClass},
            {"viewBox", fmt::format("0 0 {} {}", coordinate(kPageWidth), coordinate(height))},
            {"width", "100%"},
            {"role", "img"}});
  svg.element("title", {}, heading.title);
  svg.element("desc", {}, description);
  svg.open("style", {});
  svg.raw(style_sheet());
  svg.close();
  svg.element("rect", {{"class", "fill-paper"}, {"width", kPageWidth}, {"height", height}});
  svg.raw(body.text());
  svg.close();
  return svg.text();
}

std::string without_style(std::string drawing) {
  constexpr std::string_view kOpen = "<style>\n";
  constexpr std::string_view kClose = "</style>\n";
  const std::size_t begin = drawing.find(kOpen);
  const std::size_t end = drawing.find(kClose, begin);
  if (end != std::string::npos) drawing.erase(begin, end + kClose.size() - begin);
  return drawing;
}

std::string words_of(std::string_view drawing) {
  constexpr std::string_view kOpen = "<desc>";
  const std::size_t begin = drawing.find(kOpen);
  const std::size_t end = drawing.find("</desc>", begin);
  if (end == std::string_view::npos) return {};
  return xml_unescaped(drawing.substr(begin + kOpen.size(), end - begin - kOpen.size()));
}

double draw_heading(Svg& svg, const Heading& heading) {
  constexpr double kWidth = kPageWidth - 2 * kMargin;
  constexpr double kBelow = 12;
  double y = kMargin;
  if (!heading.title.empty()) {
    y += kTitleSize;
    svg.element("text", {{"class", "title fill-ink"}, {"x", kMargin}, {"y", y}},
                fitted(heading.title, kTitleSize * kBold, kWidth));
  }
  if (!heading.subtitle.empty()) {
    y += kTextSize + 6;
    svg.element("text", {{"class", "fill-soft"}, {"x", kMargin}, {"y", y}},
                fitted(heading.subtitle, kTextSize, kWidth));
  }
  return y + kBelow;
}

double label_room(const AxisLine& line) {
  double room = 0;
  for (const std::string& label : line.labels()) {
    room = std::max(room, text_width(label, kSmallSize));
  }
  return std::min(room, kMostLabelRoom);
}

double draw_x_axis(Svg& svg, const Axis& axis, const AxisLine& line, const Box& plot) {
  for (const double tick : line.ticks()) {
    const double x = line.at(tick);
    svg.element("line", {{"class", "grid stroke-grid"},
                         {"x1", x},
                         {"y1", plot.top},
                         {"x2", x},
                         {"y2", plot.bottom}});
  }
  const double labels_y = plot.bottom + 6 + kSmallSize;
  const std::size_t stride = label_stride(line);
  for (std::size_t i = 0; i < line.labels().size(); i += stride) {
    svg.element(
        "text",
        {{"class", "small middle fill-soft"}, {"x", line.at(line.ticks()[i])}, {"y", labels_y}},
        fitted(line.labels()[i], kSmallSize, kMostLabelRoom));
  }
  if (axis.title.empty()) return labels_y + 6;
  const double title_y = labels_y + 8 + kTextSize;
  svg.element("text",
              {{"class", "middle fill-ink"}, {"x", (plot.left + plot.right) / 2}, {"y", title_y}},
              fitted(axis.title, kTextSize, plot.right - plot.left));
  return title_y + 6;
}

void draw_y_axis(Svg& svg, const Axis& axis, const AxisLine& line, const Box& plot,
                 double title_y) {
  for (std::size_t i = 0; i < line.ticks().size(); ++i) {
    const double y = line.at(line.ticks()[i]);
    svg.element("line", {{"class", "grid stroke-grid"},
                         {"x1", plot.left},
                         {"y1", y},
                         {"x2", plot.right},
                         {"y2", y}});
    svg.element("text", {{"class", "small end fill-soft"}, {"x", plot.left - 8}, {"y", y + 4}},
                fitted(line.labels()[i], kSmallSize, kMostLabelRoom));
  }
  svg.element("text", {{"class", "fill-ink"}, {"x", kMargin}, {"y", title_y}},
              fitted(axis.title, kTextSize, kPageWidth - 2 * kMargin));
}

std::string LeftOut::text() const {
  if (values == 0) return {};
  return fmt::format(
      " Left out: {} {} that the axes cannot show (not a finite number, below zero in a bar, or "
      "not "
      "above zero on a logarithmic axis).",
      values, values == 1 ? "value" : "values");
}

}  // namespace assay::plot
