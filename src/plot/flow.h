// A diagram of inputs and outputs: inputs on the left, one box in the middle, outputs on the right;
// stacked vertically if the drawing is narrow.
//
//   const std::string svg = draw(Flow{
//       .heading = {"Lineage"},
//       .left = {{"train.bin", "12.0 MiB, from @1 prepare"}},
//       .middle = {"train.py", "run 2"},
//       .right = {{"model.pt", "4.10 GiB, read by @3 eval"}}});
#pragma once

#include <string>
#include <vector>

#include "plot/canvas.h"

namespace assay::plot {

struct FlowBox {
  std::string title;
  std::string detail = {};
};

struct Flow {
  Heading heading;
  std::vector<FlowBox> left;
  FlowBox middle;
  std::vector<FlowBox> right;
};

Drawing draw(const Flow& chart, double width = kPageWidth);

}  // namespace assay::plot
