// The bootstrap's interval for a mean: what means of samples from the sample do, corrected for bias
// and for a spread that depends on the mean (BCa: Efron, "Better bootstrap confidence intervals",
// 1987). It is shown beside the signed-rank interval, which assumes symmetry where this does not.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "compare/signed_rank.h"

namespace assay::compare {

struct Resampling {
  int samples = 2000;
  std::uint64_t seed = 1;
};

// Nothing for fewer than two values.
std::optional<Interval> bootstrap_mean_interval(std::span<const double> values, double alpha,
                                                const Resampling& resampling = {});

}  // namespace assay::compare
