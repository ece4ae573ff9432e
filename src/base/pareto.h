// The Pareto front of points with two costs.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace assay::base {

struct Tradeoff {
  double x = 0;
  double y = 0;
};

// Indices of the points that no other point dominates (at least as good in both costs, better in
// one); of equal points the first. Lower is better. Sorted by ascending x, hence descending y. NaN
// is not allowed.
std::vector<std::size_t> pareto_front(std::span<const Tradeoff> points);

}  // namespace assay::base
