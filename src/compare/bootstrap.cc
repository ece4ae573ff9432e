#include "compare/bootstrap.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/draws.h"
#include "compare/distributions.h"

namespace assay::compare {
namespace {

std::vector<double> sorted_means(std::span<const double> values, const Resampling& resampling) {
  base::Draws draws(resampling.seed);
  std::vector<double> means(static_cast<std::size_t>(resampling.samples));
  for (double& mean : means) {
    double sum = 0;
    for (std::size_t i = 0; i < values.size(); ++i) sum += values[draws.below(values.size())];
    mean = sum / static_cast<double>(values.size());
  }
  std::sort(means.begin(), means.end());
  return means;
}

// How the mean's spread changes with the mean, by leaving out each value in turn; of a mean that is
// a sixth of the values' skewness over the root of their number.
double acceleration(std::span<const double> values, double mean) {
  double squares = 0;
  double cubes = 0;
  for (const double value : values) {
    const double off = value - mean;
    squares += off * off;
    cubes += off * off * off;
  }
  return squares > 0 ? cubes / (6 * std::pow(squares, 1.5)) : 0;
}

double value_at(const std::vector<double>& sorted, double part) {
  const double place = part * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const double above = sorted[std::min(below + 1, sorted.size() - 1)];
  return sorted[below] + (above - sorted[below]) * (place - static_cast<double>(below));
}

}  // namespace

std::optional<Interval> bootstrap_mean_interval(std::span<const double> values, double alpha,
                                                const Resampling& resampling) {
  if (values.size() < 2 || resampling.samples < 2) return std::nullopt;
  const double mean =
      std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  const std::vector<double> means = sorted_means(values, resampling);
  if (means.front() == means.back()) return Interval{mean, mean};
  const auto [first, last] = std::equal_range(means.begin(), means.end(), mean);
  const auto below = static_cast<double>(first - means.begin());
  const auto ties = static_cast<double>(last - first);
  const auto count = static_cast<double>(means.size());
  // Kept off the ends, where the quantile is infinite.
  const double part = std::clamp((below + ties / 2) / count, 0.5 / count, 1 - 0.5 / count);
  const double bias = normal_quantile(part);
  const double a = acceleration(values, mean);
  const auto end = [&](double p) {
    const double z = bias + normal_quantile(p);
    return value_at(means, std::clamp(normal_cdf(bias + z / (1 - a * z)), 0.0, 1.0));
  };
  return Interval{end(alpha / 2), end(1 - alpha / 2)};
}

}  // namespace assay::compare
