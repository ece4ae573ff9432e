// The distribution of values: a histogram with the individual values below it.
//
//   const std::string svg = draw(Distribution{
//       .heading = {"Step times"},
//       .value = {.title = "milliseconds per step"},
//       .values = {101.2, 100.9, 143.0},
//       .counted = "steps"});
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "plot/axis.h"
#include "plot/canvas.h"

namespace assay::plot {

struct Distribution {
  Heading heading;
  Axis value;
  std::vector<double> values;
  std::string counted = "values";                        // what the bars count
  std::function<std::string(std::size_t)> name_of = {};  // of the i-th value: "step 17"
};

// Bars from zero, dashed lines at the 50th, 90th and 99th percentile, and a dot per value. A few
// outliers are drawn beside the axis instead of stretching it. If there are very many values, only
// as many dots are drawn as can be distinguished: the outermost, and one in n of the others, as the
// description states.
Drawing draw(const Distribution& chart, double width = kPageWidth);

}  // namespace assay::plot
