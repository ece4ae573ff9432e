// How evenly a step's tokens were spread over the experts of its mixtures.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace assay::train {

struct ExpertLoad {
  double balance_loss = 0;    // mean over mixtures; 1: balanced
  double router_z_loss = 0;   // mean square of the routers' log Z
  double dropped = 0;         // fraction of slots dropped because the expert was full
  double largest = 0;         // largest load of any expert, as a multiple of the mean load
  double entropy = 0;         // of the load, relative to the maximum; mean over mixtures
  std::vector<double> share;  // each expert's share of the slots, over all mixtures
};

// `loads`: the number of slots routed to each expert, one row of `experts` per mixture.
ExpertLoad expert_load(std::span<const float> loads, std::int64_t experts);

}  // namespace assay::train
