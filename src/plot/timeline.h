// Lanes of slices and moments along a time axis.
//
//   const std::string svg = draw(Timeline{
//       .heading = {"The run"},
//       .time = {.title = "minutes"},
//       .lanes = {{"steps", {{0.2, 9.8, "100 steps"}}, {}},
//                 {"checkpoints", {}, {{5, "step 50"}, {9.8, "step 100"}}}}});
#pragma once

#include <string>
#include <vector>

#include "plot/axis.h"
#include "plot/canvas.h"

namespace assay::plot {

struct Slice {
  double from = 0;
  double to = 0;
  std::string label = {};
};

struct Moment {
  double at = 0;
  std::string label = {};
};

struct Lane {
  std::string name;
  std::vector<Slice> slices = {};
  std::vector<Moment> moments = {};
};

struct Timeline {
  Heading heading;
  Axis time;
  std::vector<Lane> lanes;  // from top to bottom
};

// Slices too short to be visible are drawn at the minimum visible width. Slices that the axis
// cannot show, or that end before they begin, are left out, and the description says how many.
Drawing draw(const Timeline& chart, double width = kPageWidth);

}  // namespace assay::plot
