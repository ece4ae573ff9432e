// Levels: reference lines and bands across a chart, such as zero, a margin, a noise floor.
#pragma once

#include <string>
#include <vector>

#include "plot/axis.h"
#include "plot/canvas.h"
#include "plot/marks.h"
#include "plot/xml.h"

namespace assay::plot {

struct Level {
  std::string name;
  double at = 0;
};

struct LevelBand {
  std::string name;
  Interval between;
};

struct Levels {
  std::vector<Level> lines = {};
  std::vector<LevelBand> bands = {};

  // Those that the axis shows; the others count as omitted.
  [[nodiscard]] Levels shown_on(const Axis& axis, Omitted& omitted) const;
  void add_to(Extent& extent) const;
  [[nodiscard]] std::string description(
      const Axis& axis) const;  // sentences, each with a leading space
};

// Draws them across the box, at their positions along `line`: horizontally if that is the vertical
// axis.
void draw_levels(XmlWriter& svg, const Levels& levels, const AxisLine& line, const Box& box,
                 bool line_is_vertical);
// Lines have different dashes, bands different colours.
std::vector<LegendEntry> legend_of(const Levels& levels);

}  // namespace assay::plot
