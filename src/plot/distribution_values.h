// What a distribution is drawn from: values in order, how many lie in which bin, which get a dot.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

#include "plot/distribution.h"

namespace assay::plot {

inline constexpr std::size_t kOutermost = 100;  // dots at either end that are never left out

// Values that the axis shows, in their order, and in ascending order.
struct CleanValues {
  std::vector<std::size_t> places;
  std::vector<double> values;
  std::vector<double> ascending;
  // Those above it would leave all others one bar; they have a zone of their own.
  double axis_end = std::numeric_limits<double>::infinity();

  [[nodiscard]] std::size_t far() const {
    return static_cast<std::size_t>(ascending.end() -
                                    std::upper_bound(ascending.begin(), ascending.end(), axis_end));
  }
};

CleanValues clean_values(const Distribution& chart, LeftOut& left_out);

// As many as show the shape, along a line that has a place.
std::size_t bins_for(const CleanValues& clean, const AxisLine& line);
std::vector<std::size_t> counts_of(const CleanValues& clean, const AxisLine& line,
                                   std::size_t bins);

// Which values get a dot.
std::vector<std::size_t> dotted(const CleanValues& clean);

}  // namespace assay::plot
