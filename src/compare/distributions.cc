#include "compare/distributions.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace assay::compare {
namespace {

// Quantiles are found by halving: every CDF here is monotone and exact enough to be its own test.
template <class Cdf>
double inverse(const Cdf& cdf, double p) {
  double low = -1;
  double high = 1;
  while (cdf(low) > p) low *= 2;
  while (cdf(high) < p) high *= 2;
  for (int i = 0; i < 200 && low < high; ++i) {
    const double middle = low + (high - low) / 2;
    if (middle <= low || middle >= high) break;
    (cdf(middle) < p ? low : high) = middle;
  }
  return high;
}

// Lentz's evaluation of the continued fraction of the incomplete beta function (Abramowitz and
// Stegun 26.5.8), which converges quickly for x < (a + 1)/(a + b + 2).
double beta_fraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300;
  constexpr int kTerms = 10'000;
  const auto away_from_zero = [](double v) { return std::abs(v) < kTiny ? kTiny : v; };
  double c = 1;
  double d = 1 / away_from_zero(1 - (a + b) * x / (a + 1));
  double value = d;
  for (int m = 1; m < kTerms; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / away_from_zero(1 + even * d);
    c = away_from_zero(1 + even / c);
    value *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / away_from_zero(1 + odd * d);
    c = away_from_zero(1 + odd / c);
    const double step = d * c;
    value *= step;
    if (std::abs(step - 1) < std::numeric_limits<double>::epsilon()) break;
  }
  return value;
}

// `other` is 1 - x, given because x may be so near to 1 that it cannot be computed from it.
double incomplete_beta(double a, double b, double x, double other) {
  if (x <= 0) return 0;
  if (other <= 0) return 1;
  const double front = std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) +
                                a * std::log(x) + b * std::log(other));
  if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(a, b, x) / a;
  return 1 - front * beta_fraction(b, a, other) / b;
}

}  // namespace

double normal_cdf(double z) {
  return 0.5 * std::erfc(-z / std::sqrt(2.0));
}

double normal_quantile(double p) {
  return inverse(normal_cdf, p);
}

double student_cdf(double t, double freedom) {
  const double square = t * t;
  const double x = freedom / (freedom + square);
  const double tail = 0.5 * incomplete_beta(freedom / 2, 0.5, x, square / (freedom + square));
  return t < 0 ? tail : 1 - tail;
}

double student_quantile(double p, double freedom) {
  // The upper half has fewer digits of p to lose: mirror it.
  if (p > 0.5) return -student_quantile(1 - p, freedom);
  return inverse([&](double t) { return student_cdf(t, freedom); }, p);
}

double coin_cdf(int k, int n) {
  if (k < 0) return 0;
  double sum = 0;
  for (int i = 0; i <= std::min(k, n); ++i) {
    sum += std::exp(std::lgamma(n + 1.0) - std::lgamma(i + 1.0) - std::lgamma(n - i + 1.0) -
                    n * std::log(2.0));
  }
  return std::min(1.0, sum);
}

}  // namespace assay::compare
