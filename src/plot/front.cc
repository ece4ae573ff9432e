#include "plot/front.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>

namespace assay::plot {

std::vector<std::size_t> pareto_front(std::span<const Candidate> candidates) {
  std::vector<std::size_t> order(candidates.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::tie(candidates[a].x, candidates[a].y) < std::tie(candidates[b].x, candidates[b].y);
  });
  std::vector<std::size_t> front;
  double best = std::numeric_limits<double>::infinity();
  for (const std::size_t i : order) {
    if (candidates[i].y >= best) continue;
    best = candidates[i].y;
    front.push_back(i);
  }
  return front;
}

}  // namespace assay::plot
