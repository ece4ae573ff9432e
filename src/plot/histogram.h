// The data behind a Distribution: its values in order, the outliers, the counts per bin, and which
// values get a dot.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

#include "plot/distribution.h"

namespace assay::plot {

inline constexpr std::size_t kOutermost = 100;  // dots at either end that are always drawn

// The values that the axis can show, in their original and in ascending order.
struct HistogramValues {
  std::vector<std::size_t> places;
  std::vector<double> values;
  std::vector<double> ascending;
  // Values above this are outliers, drawn beside the axis: on it, all other values would share a
  // single bar.
  double axis_end = std::numeric_limits<double>::infinity();

  [[nodiscard]] std::size_t outliers() const {
    return static_cast<std::size_t>(ascending.end() -
                                    std::upper_bound(ascending.begin(), ascending.end(), axis_end));
  }
};

HistogramValues histogram_values(const Distribution& chart, Omitted& omitted);

// The number of bins that shows the shape best; the line must have been laid out.
std::size_t bins_for(const HistogramValues& data, const AxisLine& line);
std::vector<std::size_t> counts_of(const HistogramValues& data, const AxisLine& line,
                                   std::size_t bins);

// Which values get a dot.
std::vector<std::size_t> dotted(const HistogramValues& data);

}  // namespace assay::plot
