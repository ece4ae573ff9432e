// Which of many points are worth looking at when two things count.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace assay::plan {

struct TimeAndCost {
  double seconds = 0;
  double cost = 0;
};

// Positions of the points that no other beats, where to beat is to be worse in neither and better
// in one; of equal points the first. Ascending time, so descending cost.
std::vector<std::size_t> pareto_front(std::span<const TimeAndCost> points);

}  // namespace assay::plan
