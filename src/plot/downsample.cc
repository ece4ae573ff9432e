#include "plot/downsample.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

namespace assay::plot {
namespace {

struct Extremes {
  std::optional<std::size_t> least;
  std::optional<std::size_t> most;
  std::optional<std::size_t> gap;
};

Extremes extremes_of(std::span<const double> values, std::size_t begin, std::size_t end) {
  Extremes found;
  for (std::size_t i = begin; i < end; ++i) {
    if (!std::isfinite(values[i])) {
      if (!found.gap) found.gap = i;
      continue;
    }
    if (!found.least || values[i] < values[*found.least]) found.least = i;
    if (!found.most || values[i] > values[*found.most]) found.most = i;
  }
  return found;
}

}  // namespace

std::vector<std::size_t> downsample(std::span<const double> values, std::size_t most) {
  most = std::max(most, kFewestKept);
  std::vector<std::size_t> kept;
  if (values.size() <= most) {
    kept.resize(values.size());
    std::iota(kept.begin(), kept.end(), std::size_t{0});
    return kept;
  }
  const std::size_t stretches = (most - 2) / 3;
  kept.reserve(most);
  kept.push_back(0);
  for (std::size_t s = 0; s < stretches; ++s) {
    const Extremes found =
        extremes_of(values, s * values.size() / stretches, (s + 1) * values.size() / stretches);
    for (const auto& place : {found.least, found.most, found.gap}) {
      if (place) kept.push_back(*place);
    }
  }
  kept.push_back(values.size() - 1);
  std::sort(kept.begin(), kept.end());
  kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
  return kept;
}

std::vector<LinePoint> downsample_to_band(std::span<const LinePoint> points, std::size_t most) {
  most = std::max(most, kFewestKept);
  if (points.size() <= most) return {points.begin(), points.end()};
  std::vector<LinePoint> made;
  made.reserve(most);
  for (std::size_t s = 0; s < most; ++s) {
    const auto stretch = points.subspan(s * points.size() / most,
                                        (s + 1) * points.size() / most - s * points.size() / most);
    Extent extent;
    double sum = 0;
    double count = 0;
    for (const LinePoint& point : stretch) {
      if (!std::isfinite(point.y)) continue;
      extent.add(point.y);
      sum += point.y;
      count += 1;
    }
    const double x = stretch[stretch.size() / 2].x;
    if (extent.empty()) {
      made.push_back({x, std::nan("")});
    } else {
      // Rounding may carry a mean past what it is the mean of.
      made.push_back(
          {x, std::clamp(sum / count, extent.low, extent.high), Interval{extent.low, extent.high}});
    }
  }
  return made;
}

}  // namespace assay::plot
