// Values in the order in which they were measured: autocorrelation, drift, outliers, warm-up.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace assay::compare {

// Correlation of each value's rank with the next one's, -1 to 1; 0 for fewer than 4 values. Ranks,
// because a single spike would hide or fake a correlation of values.
double rank_autocorrelation(std::span<const double> values);

// The factor, at least 1, by which an interval that assumes `count` independent values must be
// widened. With a first-order autocorrelation r the effective number of values is count
// (1-r)/(1+r); r is corrected for its small-sample bias, and Student's t accounts for the fewer
// values. A correlation below 1/sqrt(count), common among independent values, is treated as chance,
// as is any correlation among fewer than 12 values.
double widening(double autocorrelation, std::size_t count, double alpha);

struct Drift {
  double change = 0;  // centre of the second half minus that of the first
  double p = 1;       // of Spearman's test of value against order
};
Drift drift_of(std::span<const double> values);

// Positions of values more than 5 robust deviations from the median.
std::vector<std::size_t> outliers(std::span<const double> values);

// How many consecutive values at the beginning differ from the later ones by more than 4 robust
// deviations; at most a quarter of all values, and at most 10. 0 for fewer than 8 values.
std::size_t warm_up_count(std::span<const double> values);

}  // namespace assay::compare
