#include "base/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "base/check.h"

namespace assay::base {
namespace {

constexpr double kMadToDeviation =
    1.482602218505602;  // 1 / the normal distribution's 75 % quantile

// Index in sorted order, for count >= 1.
std::size_t nearest_rank(std::size_t count, double share) {
  ASSAY_CHECK(count > 0, "a quantile needs at least one value");
  ASSAY_CHECK(share >= 0 && share <= 1, "a quantile's share is from 0 to 1");
  const double rank = std::ceil(share * static_cast<double>(count));
  return static_cast<std::size_t>(std::max(1.0, rank)) - 1;
}

}  // namespace

double median(std::vector<double> values) {
  ASSAY_CHECK(!values.empty(), "a median needs at least one value");
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*std::max_element(values.begin(), middle) + *middle) / 2;
}

double quantile(std::vector<double> values, double share) {
  return quantiles(std::move(values), std::span(&share, 1)).front();
}

double quantile_of_sorted(std::span<const double> ascending, double share) {
  return ascending[nearest_rank(ascending.size(), share)];
}

std::vector<double> quantiles(std::vector<double> values,
                              std::span<const double> ascending_shares) {
  std::vector<double> found;
  found.reserve(ascending_shares.size());
  // After nth_element nothing to the left of a place exceeds it, so the next, higher quantile is
  // searched to the right only.
  auto from = values.begin();
  for (const double share : ascending_shares) {
    const auto place =
        values.begin() + static_cast<std::ptrdiff_t>(nearest_rank(values.size(), share));
    ASSAY_CHECK(place >= from, "shares are in ascending order");
    std::nth_element(from, place, values.end());
    from = place;
    found.push_back(*place);
  }
  return found;
}

double median_absolute_deviation(std::span<const double> values) {
  std::vector<double> distances(values.begin(), values.end());
  const double middle = median(distances);
  for (double& value : distances) value = std::abs(value - middle);
  return median(std::move(distances));
}

double robust_deviation(std::span<const double> values) {
  return values.empty() ? 0 : kMadToDeviation * median_absolute_deviation(values);
}

}  // namespace assay::base
