// Reduces points without changing how a chart looks: a drawing is some hundred pixels wide, a run
// has a hundred thousand steps.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "plot/lines.h"

namespace assay::plot {

// With fewer, downsample() could not keep all extremes.
inline constexpr std::size_t kFewestKept = 8;

// Ascending indices of at most `most` of the values: the first and the last, and from each of many
// equal intervals the smallest, the largest, and the first that is not finite, where a line has a
// gap. So extremes are kept. All indices if there are at most `most`.
std::vector<std::size_t> downsample(std::span<const double> values, std::size_t most);

// At most `most` points of a line: the mean of each of equal intervals, with its smallest and
// largest value. An interval without a finite value becomes a gap. The points themselves if there
// are at most `most`.
std::vector<LinePoint> downsample_to_band(std::span<const LinePoint> points, std::size_t most);

}  // namespace assay::plot
