// Values in the order in which they were measured: do they depend on each other, do they drift,
// which stand apart, and how many at the beginning are still warming up?
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace assay::compare {

double median_of(std::vector<double> values);  // there must be one

// The median distance from the median, scaled to be the standard deviation where values are normal.
double robust_deviation(std::span<const double> values);

// Correlation of each value's rank with the next one's, -1 to 1; 0 for fewer than 4 values. Ranks,
// because one spike would hide or make a correlation of values.
double rank_autocorrelation(std::span<const double> values);

// By how much an interval that takes `count` values for independent must be widened, at least 1.
// With a first-order dependence r, count (1-r)/(1+r) values would say as much; r is corrected for
// being estimated too low from few values, and the fewer values are paid for with Student's t.
// A correlation below 1/sqrt(count), which independent values often show, is taken for chance, and
// so is any among fewer than 12 values.
double widening(double autocorrelation, std::size_t count, double alpha);

struct Drift {
  double change = 0;  // centre of the second half less that of the first
  double p = 1;       // that order and value correlate so much by chance (Spearman)
};
Drift drift_of(std::span<const double> values);

// Places of values more than 5 robust deviations from the median.
std::vector<std::size_t> outliers(std::span<const double> values);

// How many values at the beginning are away from what the later ones are: more than 4 robust
// deviations, without a gap, and never more than a quarter of all or 10. Fewer than 8 values cannot
// tell.
std::size_t warm_up_count(std::span<const double> values);

}  // namespace assay::compare
