// Estimates with their intervals, one below the other, against lines such as zero and a margin.
//
//   const std::string svg = draw(Intervals{
//       .heading = {"What B adds"},
//       .value = {.title = "% of A"},
//       .rows = {{"signed rank", 1.2, Interval{0.9, 1.5}}, {"noise: A' against A", 0.1}},
//       .levels = {.lines = {{"no effect", 0}, {"margin", 1}}}});
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "plot/axis.h"
#include "plot/canvas.h"
#include "plot/levels.h"

namespace assay::plot {

struct IntervalRow {
  std::string label;
  double centre = 0;
  std::optional<Interval> interval = std::nullopt;
  std::size_t group = 0;  // its colour and shape
};

struct Intervals {
  Heading heading;
  Axis value;
  std::vector<IntervalRow> rows;
  Levels levels = {};
};

// A row that the axis cannot show is left out, and the description says how many.
Drawing draw(const Intervals& chart, double width = kPageWidth);

}  // namespace assay::plot
