#include "plot/levels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "plot/style.h"

namespace assay::plot {
namespace {

void draw_level(XmlWriter& svg, std::size_t index, double at, const Box& box, bool level) {
  svg.element("line", {{"class", level_class(index)},
                       {"x1", level ? box.left : at},
                       {"y1", level ? at : box.top},
                       {"x2", level ? box.right : at},
                       {"y2", level ? at : box.bottom}});
}

void draw_level_band(XmlWriter& svg, std::size_t index, double from, double to, const Box& box,
                     bool level) {
  const double low = std::min(from, to);
  const double size = std::abs(to - from);
  svg.element("rect", {{"class", level_band_class(index)},
                       {"x", level ? box.left : low},
                       {"y", level ? low : box.top},
                       {"width", level ? box.right - box.left : size},
                       {"height", level ? size : box.bottom - box.top}});
}

}  // namespace

Levels Levels::shown_on(const Axis& axis, Omitted& omitted) const {
  Levels shown;
  for (const Level& line : lines) {
    if (axis.shows(line.at)) {
      shown.lines.push_back(line);
    } else {
      ++omitted.values;
    }
  }
  for (const LevelBand& band : bands) {
    if (axis.shows(band.between.low) && axis.shows(band.between.high)) {
      shown.bands.push_back(band);
    } else {
      ++omitted.values;
    }
  }
  return shown;
}

void Levels::add_to(Extent& extent) const {
  for (const Level& line : lines) extent.add(line.at);
  for (const LevelBand& band : bands) {
    extent.add(band.between.low);
    extent.add(band.between.high);
  }
}

std::string Levels::description(const Axis& axis) const {
  std::string text;
  for (const Level& line : lines) {
    text += fmt::format(" A line at {}: {}.", axis.text_of(line.at), line.name);
  }
  for (const LevelBand& band : bands) {
    text += fmt::format(" A band from {} to {}: {}.", axis.text_of(band.between.low),
                        axis.text_of(band.between.high), band.name);
  }
  return text;
}

void draw_levels(XmlWriter& svg, const Levels& levels, const AxisLine& line, const Box& box,
                 bool line_is_vertical) {
  for (std::size_t i = 0; i < levels.bands.size(); ++i) {
    const Interval& between = levels.bands[i].between;
    draw_level_band(svg, i, line.at(between.low), line.at(between.high), box, line_is_vertical);
  }
  for (std::size_t i = 0; i < levels.lines.size(); ++i) {
    draw_level(svg, i, line.at(levels.lines[i].at), box, line_is_vertical);
  }
}

std::vector<LegendEntry> legend_of(const Levels& levels) {
  std::vector<LegendEntry> entries;
  for (std::size_t i = 0; i < levels.lines.size(); ++i) {
    entries.push_back({LegendMark::kLevel, i, levels.lines[i].name});
  }
  for (std::size_t i = 0; i < levels.bands.size(); ++i) {
    entries.push_back({LegendMark::kLevelBand, i, levels.bands[i].name});
  }
  return entries;
}

}  // namespace assay::plot
