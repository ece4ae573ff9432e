// Axis: how a chart describes an axis. AxisLine: its ticks, and the mapping of values to positions
// on the drawing.
#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "plot/ticks.h"

namespace assay::plot {

struct Axis {
  std::string title;  // with the unit: "tokens/s"
  Scale scale = Scale::kLinear;
  bool from_zero = false;                               // linear axes only
  bool whole = false;                                   // counts: no ticks between whole numbers
  std::function<std::string(double)> format = {};       // of values; empty: short_number
  std::function<std::string(double)> tick_format = {};  // empty: tick_labels

  // Whether the value can be drawn: finite, not too large, and positive on a logarithmic scale.
  [[nodiscard]] bool shows(double value) const;
  [[nodiscard]] std::string text_of(double value) const;
};

// An interval that holds a value with some confidence, e.g. 80 %.
struct Interval {
  double low = 0;
  double high = 0;
};

// Smallest and largest of some values.
struct Extent {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void add(double value);
  [[nodiscard]] bool empty() const { return low > high; }
};

// An axis with ticks, mapped to a line of the drawing.
class AxisLine {
 public:
  // The axis must be able to show every value of the extent.
  AxisLine(const Axis& axis, Extent values, std::size_t most_ticks);

  // Sets the positions of its ends on the drawing.
  void lay(double low_end, double high_end);

  [[nodiscard]] double at(double value) const;
  [[nodiscard]] double low_end() const { return low_end_; }
  [[nodiscard]] double high_end() const { return high_end_; }
  [[nodiscard]] const Extent& shown() const { return shown_; }
  [[nodiscard]] std::span<const double> ticks() const { return ticks_; }
  [[nodiscard]] std::span<const std::string> labels() const { return labels_; }

  // The i-th of `count` values spaced evenly on the drawing over the extent.
  [[nodiscard]] double between(const Extent& extent, std::size_t i, std::size_t count) const;

 private:
  [[nodiscard]] double scaled(double value) const;  // its logarithm on a logarithmic scale
  [[nodiscard]] double unscaled(double value) const;

  static std::vector<double> whole_ticks(const Extent& values);

  // Ends the axis shortly after its values if the outermost ticks are far from them.
  void trim(const Extent& values);

  Scale scale_;
  Extent shown_;  // the values at the ends
  std::vector<double> ticks_;
  std::vector<std::string> labels_;
  double low_end_ = 0;
  double high_end_ = 1;
};

}  // namespace assay::plot
