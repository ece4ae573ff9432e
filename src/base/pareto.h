// Which of many points are worth looking at when two things count.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace assay::base {

struct Tradeoff {
  double x = 0;
  double y = 0;
};

// Positions of the points that no other beats, where to beat is to be worse in neither and better
// in one; of equal points the first. Less is better. Ascending x, so descending y. All must be
// numbers.
std::vector<std::size_t> pareto_front(std::span<const Tradeoff> points);

}  // namespace assay::base
