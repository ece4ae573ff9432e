// The distributions that intervals are made from.
#pragma once

namespace assay::compare {

// P(Z <= z) and its inverse, for 0 < p < 1.
double normal_cdf(double z);
double normal_quantile(double p);

// P(T <= t) with `freedom` degrees of freedom, which need not be a whole number, and its inverse.
double student_cdf(double t, double freedom);
double student_quantile(double p, double freedom);

// The probability of at most `k` heads in `n` throws of a fair coin.
double coin_cdf(int k, int n);

}  // namespace assay::compare
