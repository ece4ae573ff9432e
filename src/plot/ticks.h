// Round values along an axis: 1, 2 and 5 times powers of ten, or powers of the logarithm's base.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace assay::plot {

enum class Scale : std::uint8_t { kLinear, kLog2, kLog10 };

// Beyond these, round values around a range could leave what a double holds: axes do not show them.
inline constexpr double kLargestShown = 1e150;
inline constexpr double kSmallestShown = 1e-150;

constexpr std::size_t kFewestTicks =
    3;  // from -1 to 1 there is none less: some power, 0, its mirror

// Ascending, from at or below `low` to at or above `high`, at most `most` but never limited to
// fewer than kFewestTicks. Both ends must be at most kLargestShown from zero and, on a logarithmic
// scale, at least kSmallestShown; low <= high. A range of nothing is widened.
std::vector<double> ticks_over(double low, double high, Scale scale, std::size_t most);

}  // namespace assay::plot
