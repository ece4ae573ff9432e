// What a Distribution is drawn from: its values in order, which of them are outliers, how many are
// in which bin, and which get a dot.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

#include "plot/distribution.h"

namespace assay::plot {

inline constexpr std::size_t kOutermost = 100;  // dots at either end that are always drawn

// Values that the axis shows, in their order, and in ascending order.
struct HistogramValues {
  std::vector<std::size_t> places;
  std::vector<double> values;
  std::vector<double> ascending;
  // Values above it are outliers: they would leave all others one bar, so they are drawn beside
  // the axis.
  double axis_end = std::numeric_limits<double>::infinity();

  [[nodiscard]] std::size_t outliers() const {
    return static_cast<std::size_t>(ascending.end() -
                                    std::upper_bound(ascending.begin(), ascending.end(), axis_end));
  }
};

HistogramValues histogram_values(const Distribution& chart, Omitted& omitted);

// As many as show the shape, along a line that is laid out.
std::size_t bins_for(const HistogramValues& data, const AxisLine& line);
std::vector<std::size_t> counts_of(const HistogramValues& data, const AxisLine& line,
                                   std::size_t bins);

// Which values get a dot.
std::vector<std::size_t> dotted(const HistogramValues& data);

}  // namespace assay::plot
