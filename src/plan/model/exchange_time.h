// The time of a collective inside a training step: that of plan/network, with the share of the
// links that computation leaves it: coll_eff of NVLink and net_eff of the network.
#pragma once

#include "plan/model/constants.h"
#include "plan/model/work.h"
#include "plan/network/network.h"
#include "step/collective.h"

namespace assay::plan {

// The ranks of one axis of a layout: each is `apart` from the next, those of the innermost by 1.
struct RankAxis {
  double ranks = 1;
  double apart = 1;
};

// Seconds; `bytes` are those of the whole, as in step::Collective. Software may reach a part of the
// bandwidth only: `share`.
double exchange_seconds(step::CollectiveKind kind, double bytes, const RankAxis& axis,
                        const Links& links, const Constants& constants, double share = 1);

// The same where nothing else uses the links: `eff` of each of them.
double exchange_alone_seconds(step::CollectiveKind kind, double bytes, const RankAxis& axis,
                              const Links& links, double eff);

}  // namespace assay::plan
