// How evenly a step's tokens were spread over the experts of its mixtures.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace assay::train {

struct ExpertLoad {
  double balance_loss = 0;    // mean over mixtures; 1: even
  double router_z_loss = 0;   // mean square of the routers' log Z
  double dropped = 0;         // of all slots, beyond the experts' capacity
  double largest = 0;         // of any expert of any mixture, as a multiple of the mean
  double entropy = 0;         // mean over mixtures, of the largest possible
  std::vector<double> share;  // of each expert, over all mixtures; they add up to 1
};

// `loads`: slots that chose each expert, a row of `experts` for each mixture.
ExpertLoad expert_load(std::span<const float> loads, std::int64_t experts);

}  // namespace assay::train
