// What went into something and what came out of it: boxes on the left, one in the middle, boxes on
// the right.
//
//   const std::string svg = draw(Flow{
//       .heading = {"Lineage"},
//       .left = {{"train.bin", "12.0 MiB, from @1 prepare"}},
//       .middle = {"train.py", "job 2"},
//       .right = {{"model.pt", "4.10 GiB, read by @3 eval"}}});
#pragma once

#include <string>
#include <vector>

#include "plot/frame.h"

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

// One <svg>.
std::string draw(const Flow& chart);

}  // namespace assay::plot
