// Points and their Pareto front: cost of offers against time.
//
//   const std::string svg = draw(Scatter{
//       .heading = {"Offers"},
//       .x = {.title = "cost, $", .scale = Scale::kLog10},
//       .y = {.title = "hours", .scale = Scale::kLog10},
//       .groups = {"on demand", "spot"},
//       .points = {{.x = 812, .y = 30.5, .label = "8x h100-sxm", .group = 1}},
//       .front_name = "cheapest for its time"});
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "plot/axis.h"
#include "plot/canvas.h"
#include "plot/levels.h"

namespace assay::plot {

struct ScatterPoint {
  double x = 0;
  double y = 0;
  std::string label = {};  // shown if there is space; points on the front first
  std::size_t group = 0;
  std::optional<Interval> x_interval = std::nullopt;
  std::optional<Interval> y_interval = std::nullopt;
  bool marked = false;  // gets a ring, and is labelled before all others
};

struct Scatter {
  Heading heading;
  Axis x;
  Axis y;
  std::vector<std::string> groups = {};  // names of the points' groups; empty: a single group
  std::vector<ScatterPoint> points;
  std::string front_name = {};  // empty: no front. Less is better on both axes.
  bool label_all = false;       // otherwise, if there is a front, only its points
  Levels levels = {};           // of y
};

// Points that an axis cannot show are left out, and the description says how many.
Drawing draw(const Scatter& chart, double width = kPageWidth);

}  // namespace assay::plot
