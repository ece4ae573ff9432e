// Order statistics of measured values. Each has one definition, used everywhere, so that two tables
// never show two medians of the same values:
// - median: the middle value; of an even count, the mean of the two middle ones.
// - quantile: nearest rank, i.e. the smallest value that at least `share` of all do not exceed. It
//   is always one of the values, so that a p99 is a step that happened.
// - MAD: the median of the distances from the median.
// Values must not be NaN, and there must be at least one unless a comment says otherwise. Two
// computations interpolate instead: the planner's weighted quantile (plan/calibrate/residuals.h),
// and the shifted quantiles of a bootstrap (compare/intervals.cc).
#pragma once

#include <span>
#include <vector>

namespace assay::base {

double median(std::vector<double> values);

// `share` is from 0 to 1; 0 gives the smallest value.
double quantile(std::vector<double> values, double share);
// For values that are already sorted.
double quantile_of_sorted(std::span<const double> ascending, double share);
// Several quantiles of many values without sorting them; `ascending_shares` are in ascending order,
// and the result has one value for each.
std::vector<double> quantiles(std::vector<double> values, std::span<const double> ascending_shares);

double median_absolute_deviation(std::span<const double> values);
// The MAD scaled to estimate the standard deviation of normally distributed values, but robust to
// outliers; 0 without values.
double robust_deviation(std::span<const double> values);

}  // namespace assay::base
