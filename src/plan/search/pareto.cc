#include "plan/search/pareto.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>

namespace assay::plan {

std::vector<std::size_t> pareto_front(std::span<const TimeAndCost> points) {
  std::vector<std::size_t> order(points.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::tuple(points[a].seconds, points[a].cost, a) <
           std::tuple(points[b].seconds, points[b].cost, b);
  });
  // All before a point are as fast, so it must be cheaper than each of them.
  std::vector<std::size_t> front;
  double cheapest = std::numeric_limits<double>::infinity();
  for (const std::size_t i : order) {
    if (!(points[i].cost < cheapest)) continue;
    cheapest = points[i].cost;
    front.push_back(i);
  }
  return front;
}

}  // namespace assay::plan
