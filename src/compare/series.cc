#include "compare/series.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/statistics.h"
#include "compare/distributions.h"
#include "compare/intervals.h"

namespace assay::compare {
namespace {

constexpr double kOutlier = 5;
constexpr double kWarmUp = 4;
constexpr std::size_t kFewestForWarmUp = 8;
constexpr std::size_t kMostWarmUp = 10;
constexpr double kMostCorrelation = 0.95;  // the formula does not hold beyond
constexpr std::size_t kFewestForCorrelation = 12;
constexpr double kFewestFreedom = 3;  // with fewer, Student's t would widen it without bound

// Equal values share the mean of their ranks.
std::vector<double> ranks(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> rank(values.size());
  for (std::size_t first = 0; first < order.size();) {
    std::size_t end = first + 1;
    while (end < order.size() && values[order[end]] == values[order[first]]) ++end;
    for (std::size_t i = first; i < end; ++i) {
      rank[order[i]] = static_cast<double>(first + end - 1) / 2;
    }
    first = end;
  }
  return rank;
}

double centre(std::span<const double> values) {
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  return hodges_lehmann(sorted);
}

}  // namespace

double rank_autocorrelation(std::span<const double> values) {
  if (values.size() < 4) return 0;
  std::vector<double> rank = ranks(values);
  const double mean = static_cast<double>(rank.size() - 1) / 2;
  double squares = 0;
  double products = 0;
  for (std::size_t i = 0; i < rank.size(); ++i) {
    rank[i] -= mean;
    squares += rank[i] * rank[i];
    if (i > 0) products += rank[i] * rank[i - 1];
  }
  return squares > 0 ? products / squares : 0;
}

double widening(double autocorrelation, std::size_t count, double alpha) {
  const auto n = static_cast<double>(count);
  if (count < kFewestForCorrelation || autocorrelation < 1 / std::sqrt(n)) return 1;
  const double r = std::min(kMostCorrelation, autocorrelation + (1 + 3 * autocorrelation) / n);
  const double factor = std::sqrt((1 + r) / (1 - r));
  const double freedom = std::max(kFewestFreedom, n / (factor * factor) - 1);
  return factor * student_quantile(1 - alpha / 2, freedom) / normal_quantile(1 - alpha / 2);
}

Drift drift_of(std::span<const double> values) {
  if (values.size() < 4) return {};
  const std::size_t half = values.size() / 2;
  const std::vector<double> rank = ranks(values);
  const double mean = static_cast<double>(rank.size() - 1) / 2;
  double products = 0;
  double squares = 0;
  double order_squares = 0;
  for (std::size_t i = 0; i < rank.size(); ++i) {
    const double order = static_cast<double>(i) - mean;
    products += order * (rank[i] - mean);
    squares += (rank[i] - mean) * (rank[i] - mean);
    order_squares += order * order;
  }
  const double correlation = squares > 0 ? products / std::sqrt(squares * order_squares) : 0;
  const double z = correlation * std::sqrt(static_cast<double>(rank.size() - 1));
  return {.change = centre(values.subspan(values.size() - half)) - centre(values.first(half)),
          .p = 2 * normal_cdf(-std::abs(z))};
}

std::vector<std::size_t> outliers(std::span<const double> values) {
  std::vector<std::size_t> found;
  const double deviation = base::robust_deviation(values);
  if (deviation == 0) return found;
  const double median = base::median({values.begin(), values.end()});
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::abs(values[i] - median) > kOutlier * deviation) found.push_back(i);
  }
  return found;
}

std::size_t warm_up_count(std::span<const double> values) {
  if (values.size() < kFewestForWarmUp) return 0;
  const std::size_t most = std::min(kMostWarmUp, values.size() / 4);
  const std::span<const double> later = values.subspan(most);
  const double deviation = base::robust_deviation(later);
  if (deviation == 0) return 0;
  const double median = base::median({later.begin(), later.end()});
  std::size_t count = 0;
  while (count < most && std::abs(values[count] - median) > kWarmUp * deviation) ++count;
  return count;
}

}  // namespace assay::compare
