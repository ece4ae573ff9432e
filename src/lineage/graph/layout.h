// Places the boxes and lines of a graph in layers from left to right. Pure; dag_picture draws the
// result.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace assay::lineage {

struct Box {
  double width = 0;
  double height = 0;
  double x = 0;  // left, filled in by lay_out
  double y = 0;  // top
};

struct Point {
  double x = 0;
  double y = 0;
};

struct Line {
  std::size_t from = 0;
  std::size_t to = 0;
  std::vector<Point> points = {};  // from the right edge of `from` to the left edge of `to`
};

struct Spacing {
  double between_layers = 56;
  double between_boxes = 14;
};

// Sets the position of every box and the points of every line; boxes do not overlap. Returns the
// size of the whole. A line that closes a cycle is drawn backwards.
Point lay_out(std::vector<Box>& boxes, std::vector<Line>& lines, const Spacing& spacing = {});

}  // namespace assay::lineage
