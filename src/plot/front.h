// The Pareto front: of points where less is better both ways, those that none other beats.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace assay::plot {

struct Candidate {
  double x = 0;
  double y = 0;
};

// Which candidates no other one equals or betters in both x and y, from left to right. Of equal
// ones the first counts. All must be numbers.
std::vector<std::size_t> pareto_front(std::span<const Candidate> candidates);

}  // namespace assay::plot
