// The probability distributions that intervals and tests are made from.
#pragma once

#include <cstdint>

namespace assay::compare {

// P(Z <= z) and its inverse, for 0 < p < 1.
double normal_cdf(double z);
double normal_quantile(double p);

// The inverse of P(T <= t) with `freedom` degrees of freedom, which need not be an integer.
double student_quantile(double p, double freedom);

// The probability of at most `heads` heads in `tosses` tosses of a fair coin.
double fair_coin_cdf(std::int64_t heads, std::int64_t tosses);

}  // namespace assay::compare
