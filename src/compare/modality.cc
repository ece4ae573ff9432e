#include "compare/modality.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "base/statistics.h"

namespace assay::compare {
namespace {

constexpr std::size_t kFewest = 8;

// The empirical distribution, in counts: at `value` it jumps from `below` to `up_to`.
struct Jump {
  double value = 0;
  double below = 0;
  double up_to = 0;
};

std::vector<Jump> distribution_of(std::span<const double> sorted) {
  std::vector<Jump> jumps;
  for (const double value : sorted) {
    if (jumps.empty() || jumps.back().value != value) {
      const double before = jumps.empty() ? 0 : jumps.back().up_to;
      jumps.push_back({value, before, before});
    }
    jumps.back().up_to += 1;
  }
  return jumps;
}

// Equal values, moved apart by too little to matter: many at one point are a narrow mode, and not a
// jump that no curve follows.
std::vector<double> without_ties(std::span<const double> sorted) {
  constexpr double kPartOfRange = 1e-6;
  const double range = sorted.back() - sorted.front();
  double least = range > 0 ? kPartOfRange * range : 1;
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    const double gap = sorted[i] - sorted[i - 1];
    if (gap > 0) least = std::min(least, gap / 4);
  }
  std::vector<double> apart(sorted.begin(), sorted.end());
  for (std::size_t begin = 0; begin < apart.size();) {
    std::size_t end = begin + 1;
    while (end < apart.size() && sorted[end] == sorted[begin]) ++end;
    const auto count = static_cast<double>(end - begin);
    for (std::size_t i = begin; i < end; ++i) {
      apart[i] += least * ((static_cast<double>(i - begin) + 0.5) / count - 0.5);
    }
    begin = end;
  }
  return apart;
}

// The greatest convex minorant of the jumps' lower ends between two positions, or the least concave
// majorant of their upper ends: its vertices, and its value at every position.
struct Hull {
  std::vector<std::size_t> vertices;
  std::vector<double> values;  // from the first position
};

Hull hull_of(const std::vector<Jump>& jumps, std::size_t first, std::size_t last, bool convex) {
  const auto height = [&](std::size_t i) { return convex ? jumps[i].below : -jumps[i].up_to; };
  Hull hull;
  for (std::size_t i = first; i <= last; ++i) {
    auto& v = hull.vertices;
    while (v.size() > 1) {
      const std::size_t a = v[v.size() - 2];
      const std::size_t b = v.back();
      const double turn = (jumps[b].value - jumps[a].value) * (height(i) - height(a)) -
                          (jumps[i].value - jumps[a].value) * (height(b) - height(a));
      if (turn > 0) break;  // b lies below the line from a to i
      v.pop_back();
    }
    v.push_back(i);
  }
  hull.values.resize(last - first + 1);
  for (std::size_t k = 0; k < hull.vertices.size(); ++k) {
    const std::size_t a = hull.vertices[k];
    const std::size_t b = hull.vertices[std::min(k + 1, hull.vertices.size() - 1)];
    for (std::size_t i = a; i <= b; ++i) {
      const double width = jumps[b].value - jumps[a].value;
      const double part = width > 0 ? (jumps[i].value - jumps[a].value) / width : 0;
      const double value = height(a) + part * (height(b) - height(a));
      hull.values[i - first] = convex ? value : -value;
    }
  }
  return hull;
}

// The split into two groups with the least variation within them.
std::size_t best_split(std::span<const double> sorted) {
  double left = 0;
  double right = 0;
  for (const double value : sorted) right += value;
  std::size_t best = 1;
  double most = -std::numeric_limits<double>::infinity();
  const auto n = static_cast<double>(sorted.size());
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    left += sorted[i - 1];
    right -= sorted[i - 1];
    const auto count = static_cast<double>(i);
    const double between = left / count - right / (n - count);
    const double explained = count * (n - count) * between * between;
    if (explained > most) {
      most = explained;
      best = i;
    }
  }
  return best;
}

}  // namespace

double dip_of(std::span<const double> sorted) {
  if (sorted.empty()) return 0;
  const std::vector<Jump> jumps = distribution_of(without_ties(sorted));
  // The interval that holds the mode shrinks. To its left the nearest unimodal distribution is
  // convex, to its right concave; what these parts miss is a lower bound of the (doubled) dip.
  std::size_t first = 0;
  std::size_t last = jumps.size() - 1;
  double missed = 1;
  while (true) {
    const Hull below = hull_of(jumps, first, last, true);
    const Hull above = hull_of(jumps, first, last, false);
    std::size_t widest = first;
    const auto gap = [&](std::size_t i) {
      return above.values[i - first] - below.values[i - first];
    };
    for (std::size_t i = first; i <= last; ++i) {
      if (gap(i) > gap(widest)) widest = i;
    }
    if (gap(widest) <= missed) break;
    std::size_t left = widest;
    std::size_t right = widest;
    if (std::ranges::binary_search(below.vertices, widest)) {
      right = *std::ranges::lower_bound(above.vertices, widest);
    } else {
      left = *(std::ranges::upper_bound(below.vertices, widest) - 1);
    }
    for (std::size_t i = first; i <= left; ++i) {
      missed = std::max(missed, jumps[i].up_to - below.values[i - first]);
    }
    for (std::size_t i = right; i <= last; ++i) {
      missed = std::max(missed, above.values[i - first] - jumps[i].below);
    }
    if (left == first && right == last) break;
    first = left;
    last = right;
  }
  return missed / (2 * static_cast<double>(sorted.size()));
}

double dip_limit(std::size_t count) {
  // Root n times the dip, simulated (modality_test.cc simulates it again).
  struct Limit {
    double count, scaled;
  };
  static constexpr std::array<Limit, 8> kLimits = {{{8, 0.491},
                                                    {12, 0.517},
                                                    {20, 0.541},
                                                    {35, 0.559},
                                                    {60, 0.579},
                                                    {120, 0.592},
                                                    {300, 0.606},
                                                    {1000, 0.630}}};
  const auto n = static_cast<double>(std::max(count, kFewest));
  const auto* above = std::ranges::find_if(kLimits, [&](const Limit& l) { return l.count >= n; });
  if (above == kLimits.end()) return kLimits.back().scaled / std::sqrt(n);
  if (above == kLimits.begin()) return above->scaled / std::sqrt(n);
  const Limit& below = *(above - 1);
  const double part = (n - below.count) / (above->count - below.count);
  return (below.scaled + part * (above->scaled - below.scaled)) / std::sqrt(n);
}

std::optional<TwoGroups> two_groups(std::span<const double> values, double least) {
  if (values.size() < kFewest) return std::nullopt;
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  if (dip_of(sorted) <= dip_limit(sorted.size())) return std::nullopt;
  const auto split = static_cast<std::ptrdiff_t>(best_split(sorted));
  TwoGroups groups{.low_count = static_cast<std::size_t>(split),
                   .high_count = sorted.size() - static_cast<std::size_t>(split)};
  groups.low = base::median({sorted.begin(), sorted.begin() + split});
  groups.high = base::median({sorted.begin() + split, sorted.end()});
  if (groups.high - groups.low < least) return std::nullopt;
  return groups;
}

}  // namespace assay::compare
