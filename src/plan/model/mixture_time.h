// The parts of a mixture layer that a dense layer does not have: products of experts, routing,
// all-to-all.
#pragma once

#include "plan/model/constants.h"
#include "plan/model/rank_share.h"
#include "plan/model/work.h"

namespace assay::plan {

// Of one layer, at full clock.
struct MixtureTime {
  TwoWays products;
  // Of the products forward: the first and the last.
  double up = 0;
  double down = 0;
  double permutation = 0;  // forward; twice that backward
  double all_to_all = 0;   // dispatch and combine, in each direction
};

MixtureTime mixture_time(const Work& work, const RankShare& rank, const Constants& constants);

}  // namespace assay::plan
