// Horizontal stacked bars from zero: how a step's time is divided, by configuration.
//
//   const std::string svg = draw(StackedBars{
//       .heading = {"Where a step goes"},
//       .value = {.title = "ms per step"},
//       .parts = {"forward", "backward", "exposed all-gather"},
//       .bars = {{"fsdp 8", {101, 204, 12.5}}, {"tp 8", {101, 204, 48}}}});
#pragma once

#include <string>
#include <vector>

#include "plot/axis.h"
#include "plot/canvas.h"

namespace assay::plot {

struct Bar {
  std::string label;
  std::vector<double> values;  // one per part, in order; missing ones are zero
};

struct StackedBars {
  Heading heading;
  Axis value;  // always linear and from zero
  std::vector<std::string> parts;
  std::vector<Bar> bars;  // from top to bottom
};

// Values that are not finite or below zero are left out, and the description says how
// many.
Drawing draw(const StackedBars& chart, double width = kPageWidth);

}  // namespace assay::plot
