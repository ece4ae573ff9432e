// Quantiles of samples. Internal to src/plan.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

namespace assay::plan {

// The smallest sample that at least `part` of all do not exceed. Reorders them; there must be one.
inline double quantile(std::vector<double>& samples, double part) {
  const double rank = std::ceil(part * static_cast<double>(samples.size())) - 1;
  const auto place = samples.begin() + static_cast<std::ptrdiff_t>(std::max(0.0, rank));
  std::nth_element(samples.begin(), place, samples.end());
  return *place;
}

}  // namespace assay::plan
