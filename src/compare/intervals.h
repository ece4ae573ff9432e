// Confidence intervals of paired differences.
//
// - Signed rank: the Hodges-Lehmann estimate of the centre, and the interval that inverts the
//   signed-rank test of Wilcoxon. Both are order statistics of the Walsh averages: the means of all
//   pairs of differences, including each with itself. There are n(n+1)/2; they are counted, never
//   stored.
// - Bootstrap: an interval of the mean, corrected for bias and skew (BCa: Efron, "Better bootstrap
//   confidence intervals", 1987). Unlike the signed-rank interval, it does not assume symmetry.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace assay::compare {

struct ConfidenceInterval {
  double low = 0;
  double high = 0;

  [[nodiscard]] double half_width() const { return (high - low) / 2; }
  [[nodiscard]] bool contains(double value) const { return low <= value && value <= high; }
  bool operator==(const ConfidenceInterval&) const = default;
};

// The k-th smallest Walsh average of sorted differences, from 1.
double walsh_average(std::span<const double> sorted, std::size_t k);

// The median of the Walsh averages. There must be at least one difference.
double hodges_lehmann(std::span<const double> sorted);

// The interval's ends are the Walsh averages of this rank from either end, counted from 1: from the
// exact distribution for up to 100 differences, from the normal approximation with continuity
// correction above. The centre is outside with a probability of at most `alpha`; nothing if there
// are too few differences for that (fewer than 6 for 0.05).
std::optional<std::size_t> signed_rank_depth(std::size_t count, double alpha);
std::optional<ConfidenceInterval> signed_rank_interval(std::span<const double> sorted,
                                                       double alpha);

struct Resampling {
  int samples = 2000;
  std::uint64_t seed = 1;
};
// Nothing for fewer than two values.
std::optional<ConfidenceInterval> bootstrap_mean_interval(std::span<const double> values,
                                                          double alpha,
                                                          const Resampling& resampling = {});

}  // namespace assay::compare
