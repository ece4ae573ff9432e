// How fast the rings of a layout are, in training, where only a card's link and network are known:
// the closed form for searches and rows. plan/network prices single collectives of a cluster that
// is described as a whole.
#pragma once

#include "plan/constants.h"
#include "plan/work.h"

namespace assay::plan {

struct RingPace {
  double bandwidth = 0;  // bytes per second that pass a rank
  double latency = 0;    // seconds of one pass around, reducing or gathering
};

// A ring over `ranks` of which each is `apart` from the next: what is innermost has 1.
RingPace ring_pace(double ranks, double apart, const Links& links, const Constants& constants);

}  // namespace assay::plan
