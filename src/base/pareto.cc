#include "base/pareto.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>

namespace assay::base {

std::vector<std::size_t> pareto_front(std::span<const Tradeoff> points) {
  std::vector<std::size_t> order(points.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::tuple(points[a].x, points[a].y, a) < std::tuple(points[b].x, points[b].y, b);
  });
  // All before a point are as good in x, so it must be better than each of them in y.
  std::vector<std::size_t> front;
  double least = std::numeric_limits<double>::infinity();
  for (const std::size_t i : order) {
    if (!(points[i].y < least)) continue;
    least = points[i].y;
    front.push_back(i);
  }
  return front;
}

}  // namespace assay::base
