// The time of one layer on one rank, forward and backward, without the exchange of parameters,
// which shards_time.h prices.
#pragma once

#include "plan/model/constants.h"
#include "plan/model/rank_share.h"
#include "plan/model/work.h"

namespace assay::plan {

// Seconds.
struct LayerTime {
  double products = 0;
  double attention = 0;
  double passes = 0;
  double routing = 0;
  double tensor = 0;
  double context = 0;
  double experts = 0;
  double host = 0;

  [[nodiscard]] double total() const {
    return products + attention + passes + routing + tensor + context + experts + host;
  }
  LayerTime& operator+=(const LayerTime& other);
  LayerTime& operator*=(double factor);
};

struct LayerTimes {
  LayerTime forward;
  LayerTime backward;     // including recomputation
  double clock = 1;       // as a fraction of full clock
  double all_reduce = 0;  // one all-reduce of tensor parallelism
  // Of our trainer: seconds in which the exchange of expert rows occupies the links, hidden or not.
  double links_forward = 0;
  double links_backward = 0;
};

LayerTimes layer_times(const Work& work, const RankShare& rank, const Constants& constants);

}  // namespace assay::plan
