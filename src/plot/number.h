// Numbers as an axis has room for them: "12k", "1.5M", "0.25".
#pragma once

#include <span>
#include <string>
#include <vector>

namespace assay::plot {

// At most `digits` significant ones, and k, M, B or T above a thousand.
std::string short_number(double value, int digits = 3);

// A label for each tick, in one manner for all of them: as short as tells neighbours apart.
std::vector<std::string> tick_labels(std::span<const double> ticks);

}  // namespace assay::plot
