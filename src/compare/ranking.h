// The order of three or more arms, and how certain it is: every pair of arms is compared within
// blocks, as the arms are with the baseline, and the comparisons are corrected for their number.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "compare/experiment.h"
#include "compare/pairs.h"

namespace assay::compare {

struct ArmPair {
  std::size_t from = 0;  // the arm that is first in the experiment
  std::size_t arm = 1;
  // ln(arm/from), with an interval such that those of all pairs hold together (Bonferroni).
  Estimate estimate;
  // Whether they differ, by Holm's procedure: among all pairs that do not, one is said to differ in
  // at most 5 of 100 experiments. At times it tells arms apart whose interval just includes 0.
  bool differ = false;
};

struct Ranking {
  std::vector<ArmPair> pairs;  // from 0 to 1, 0 to 2, …, 1 to 2, …; none for two arms
  double pair_alpha = 0;       // the error level of each interval
  // Arms from best to worst. Every arm of a group differs from every arm of the groups behind it;
  // within a group some cannot be told from others.
  std::vector<std::vector<std::size_t>> groups;

  [[nodiscard]] bool empty() const { return pairs.empty(); }
};

// Empty for two arms.
Ranking ranking_of(const Experiment& experiment, const Blocks& blocks);

// "fastest: B; order: B, then C or A (all pairs together at 95 %; "or": not distinguishable)".
std::string ranking_text(const Experiment& experiment, const Ranking& ranking);

}  // namespace assay::compare
