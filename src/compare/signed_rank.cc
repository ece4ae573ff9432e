#include "compare/signed_rank.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "compare/distributions.h"

namespace assay::compare {
namespace {

constexpr std::size_t kExactUpTo = 100;

std::size_t pair_count(std::size_t n) {
  return n * (n + 1) / 2;
}

// Pairs i <= j with d_i + d_j <= sum. As i grows, partners that fit become fewer.
std::size_t pairs_up_to(std::span<const double> sorted, double sum) {
  std::size_t count = 0;
  std::size_t end = sorted.size();  // of the partners that fit
  for (std::size_t i = 0; i < end; ++i) {
    while (end > i && sorted[i] + sorted[end - 1] > sum) --end;
    count += end - i;
  }
  return count;
}

// P(W = w) for the sum of the ranks whose coin shows heads.
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

}  // namespace

double walsh_average(std::span<const double> sorted, std::size_t k) {
  // Halving on twice the average: `high` always has k pairs at or below it, `low` has not.
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
    double outside = 0;  // P(W < depth), which is outside at either end
    std::size_t depth = 0;
    while (outside + p[depth] <= alpha / 2) outside += p[depth++];
    return depth > 0 ? std::optional(depth) : std::nullopt;
  }
  const auto n = static_cast<double>(count);
  const double mean = n * (n + 1) / 4;
  const double deviation = std::sqrt(n * (n + 1) * (2 * n + 1) / 24);
  return static_cast<std::size_t>(std::floor(mean + 0.5 + normal_quantile(alpha / 2) * deviation));
}

std::optional<Interval> signed_rank_interval(std::span<const double> sorted, double alpha) {
  const std::size_t n = sorted.size();
  if (n == 0) return std::nullopt;
  const auto depth = signed_rank_depth(n, alpha);
  if (!depth) return std::nullopt;
  return Interval{walsh_average(sorted, *depth), walsh_average(sorted, pair_count(n) + 1 - *depth)};
}

}  // namespace assay::compare
