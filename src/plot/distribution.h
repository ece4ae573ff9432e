// How values are distributed: how many lie where, and under that the values themselves.
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

// bars from zero, dashed lines at the 50th, 90th and 99th percentile, and a dot per
// value. Few values far above all others lie beside the axis instead of stretching it. Of very many
// values as many dots as can be told apart: all that lie outermost, and of the
// others one in so many, which the description says. Values that the axis cannot show are left out.
Drawing draw(const Distribution& chart, double width = kPageWidth);

// Of values in ascending order, of which there must be one: the one that `share` of them are not
// above.
double quantile(const std::vector<double>& ascending, double share);

}  // namespace assay::plot
