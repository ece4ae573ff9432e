// Round values along an axis (1, 2 and 5 times powers of ten, or powers of the logarithm's base)
// and their labels: "12k", "1.5M", "0.25".
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace assay::plot {

enum class Scale : std::uint8_t { kLinear, kLog2, kLog10 };

// Axes show nothing beyond these: round values around such a range could overflow a double.
inline constexpr double kLargestShown = 1e150;
inline constexpr double kSmallestShown = 1e-150;

constexpr std::size_t kFewestTicks = 3;  // a range around zero needs -1, 0 and 1

// Ascending, from at or below `low` to at or above `high`; at most `most`, but a limit below
// kFewestTicks is raised to it. Both ends must be at most kLargestShown from zero and, on a
// logarithmic scale, at least kSmallestShown; low <= high. An empty range is widened.
std::vector<double> ticks_over(double low, double high, Scale scale, std::size_t most);

// With at most `digits` significant digits; k, M, B or T above a thousand.
std::string short_number(double value, int digits = 3);

// A label for each tick, all in the same format, as short as possible while neighbours differ.
std::vector<std::string> tick_labels(std::span<const double> ticks);

}  // namespace assay::plot
