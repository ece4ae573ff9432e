// Hodges and Lehmann's estimate of the centre of paired differences, and the interval that inverts
// Wilcoxon's signed-rank test. Both are order statistics of the Walsh averages, the means of all
// pairs of differences with themselves and each other: n(n+1)/2, of which no list is ever made.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace assay::compare {

struct Interval {
  double low = 0;
  double high = 0;

  [[nodiscard]] double half_width() const { return (high - low) / 2; }
  [[nodiscard]] bool contains(double value) const { return low <= value && value <= high; }
  bool operator==(const Interval&) const = default;
};

// The k-th smallest Walsh average of sorted differences, from 1.
double walsh_average(std::span<const double> sorted, std::size_t k);

// Their median. There must be a difference.
double hodges_lehmann(std::span<const double> sorted);

// How far from either end the interval's ends are among the Walsh averages, from 1: the exact
// distribution up to 100 differences, the normal one with continuity correction above. The
// probability that the centre lies outside is at most `alpha`; nothing where so few differences
// cannot promise that (fewer than 6 for 0.05).
std::optional<std::size_t> signed_rank_depth(std::size_t count, double alpha);

std::optional<Interval> signed_rank_interval(std::span<const double> sorted, double alpha);

}  // namespace assay::compare
