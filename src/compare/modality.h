// Whether differences fall into two groups, as when a program sometimes takes another path: the
// centre of such differences describes none of them.
//
// The test is Hartigan's dip (Hartigan and Hartigan, "The dip test of unimodality", 1985): the
// largest distance of the empirical distribution from the nearest unimodal one. It assumes no
// shape. Of all unimodal distributions the uniform one has the largest dips; so the limits, which
// are those of uniform samples, are exceeded less often by any other.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace assay::compare {

// Of sorted values: between 1/(2n) and 1/4.
double dip_of(std::span<const double> sorted);

// What a dip of so many uniform values exceeds in one sample of a hundred.
double dip_limit(std::size_t count);

struct TwoGroups {
  double low = 0;  // medians
  double high = 0;
  std::size_t low_count = 0;
  std::size_t high_count = 0;
};
// Nothing if the values may have one mode, if they are fewer than 8, or if the groups are less than
// `least` apart (two steps of a coarse clock are no finding).
std::optional<TwoGroups> two_groups(std::span<const double> values, double least);

}  // namespace assay::compare
