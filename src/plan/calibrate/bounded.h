// A constant within its bounds as a coordinate that has none, so that no step of a fit leaves them.
// Internal to src/plan/calibrate.
#pragma once

#include <algorithm>
#include <cmath>

namespace assay::plan {

// A value at a bound would be infinitely far away.
inline constexpr double kNearestToBound = 1e-3;  // of the way between the two

inline double unbounded(double value, double low, double high) {
  const double part =
      std::clamp((value - low) / (high - low), kNearestToBound, 1 - kNearestToBound);
  return std::log(part / (1 - part));
}

inline double bounded(double coordinate, double low, double high) {
  return low + (high - low) / (1 + std::exp(-coordinate));
}

}  // namespace assay::plan
