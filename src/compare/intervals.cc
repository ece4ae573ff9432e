#include "compare/intervals.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/random_draws.h"
#include "compare/distributions.h"

namespace assay::compare {
namespace {

constexpr std::size_t kExactUpTo = 100;

std::size_t pair_count(std::size_t n) {
  return n * (n + 1) / 2;
}

// Pairs i <= j with d_i + d_j <= sum. `end` only falls as i grows, so this is linear.
std::size_t pairs_up_to(std::span<const double> sorted, double sum) {
  std::size_t count = 0;
  std::size_t end = sorted.size();
  for (std::size_t i = 0; i < end; ++i) {
    while (end > i && sorted[i] + sorted[end - 1] > sum) --end;
    count += end - i;
  }
  return count;
}

// P(W = w) for W, the sum of those of the ranks 1 to n whose coin shows heads. By hand, because
// Boost.Math does not have the exact signed-rank distribution.
std::vector<double> rank_sum_probabilities(std::size_t n) {
  std::vector<double> p(pair_count(n) + 1);
  p[0] = 1;
  std::size_t top = 0;
  for (std::size_t rank = 1; rank <= n; ++rank) {
    top += rank;
    for (std::size_t w = top; w >= rank; --w) p[w] = 0.5 * (p[w] + p[w - rank]);
    for (std::size_t w = 0; w < rank; ++w) p[w] *= 0.5;
  }
  return p;
}

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

// BCa's acceleration: how the standard error of the mean changes with the mean. The jackknife value
// is a sixth of the skewness over the root of the number of values.
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

// Interpolated between neighbours, as BCa's shifted quantiles need it.
double interpolated_at(const std::vector<double>& sorted, double part) {
  const double place = part * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const double above = sorted[std::min(below + 1, sorted.size() - 1)];
  return sorted[below] + (above - sorted[below]) * (place - static_cast<double>(below));
}

}  // namespace

double walsh_average(std::span<const double> sorted, std::size_t k) {
  // Bisection on twice the average: at least k pairs are at or below `high`, fewer than k at or
  // below `low`.
  double high = 2 * sorted.back();
  double low = 2 * sorted.front();
  if (pairs_up_to(sorted, low) >= k) return low / 2;
  while (true) {
    const double middle = low + (high - low) / 2;
    if (middle <= low || middle >= high) return high / 2;
    (pairs_up_to(sorted, middle) >= k ? high : low) = middle;
  }
}

double hodges_lehmann(std::span<const double> sorted) {
  const std::size_t pairs = pair_count(sorted.size());
  const double lower = walsh_average(sorted, (pairs + 1) / 2);
  return pairs % 2 == 1 ? lower : lower + (walsh_average(sorted, pairs / 2 + 1) - lower) / 2;
}

std::optional<std::size_t> signed_rank_depth(std::size_t count, double alpha) {
  if (count <= kExactUpTo) {
    const std::vector<double> p = rank_sum_probabilities(count);
    double outside = 0;  // P(W < depth), the error at either end
    std::size_t depth = 0;
    while (outside + p[depth] <= alpha / 2) outside += p[depth++];
    return depth > 0 ? std::optional(depth) : std::nullopt;
  }
  const auto n = static_cast<double>(count);
  const double mean = n * (n + 1) / 4;
  const double deviation = std::sqrt(n * (n + 1) * (2 * n + 1) / 24);
  return static_cast<std::size_t>(std::floor(mean + 0.5 + normal_quantile(alpha / 2) * deviation));
}

std::optional<ConfidenceInterval> signed_rank_interval(std::span<const double> sorted,
                                                       double alpha) {
  const std::size_t n = sorted.size();
  if (n == 0) return std::nullopt;
  const auto depth = signed_rank_depth(n, alpha);
  if (!depth) return std::nullopt;
  return ConfidenceInterval{walsh_average(sorted, *depth),
                            walsh_average(sorted, pair_count(n) + 1 - *depth)};
}

std::optional<ConfidenceInterval> bootstrap_mean_interval(std::span<const double> values,
                                                          double alpha,
                                                          const Resampling& resampling) {
  if (values.size() < 2 || resampling.samples < 2) return std::nullopt;
  const double mean =
      std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  const std::vector<double> means = sorted_means(values, resampling);
  if (means.front() == means.back()) return ConfidenceInterval{mean, mean};
  const auto [first, last] = std::equal_range(means.begin(), means.end(), mean);
  const auto below = static_cast<double>(first - means.begin());
  const auto ties = static_cast<double>(last - first);
  const auto count = static_cast<double>(means.size());
  // Clamped away from 0 and 1, where the normal quantile is infinite.
  const double part = std::clamp((below + ties / 2) / count, 0.5 / count, 1 - 0.5 / count);
  const double bias = normal_quantile(part);
  const double a = acceleration(values, mean);
  const auto end = [&](double p) {
    const double z = bias + normal_quantile(p);
    return interpolated_at(means, std::clamp(normal_cdf(bias + z / (1 - a * z)), 0.0, 1.0));
  };
  return ConfidenceInterval{end(alpha / 2), end(1 - alpha / 2)};
}

}  // namespace assay::compare
