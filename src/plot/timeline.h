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

// What is shorter than can be seen is drawn as wide as can be. What the axis cannot
// show, or ends before it begins, is left out, and the description says how many.
Drawing draw(const Timeline& chart, double width = kPageWidth);

}  // namespace assay::plot
