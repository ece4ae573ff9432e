// Exchange of gradients and weights among replicas in a step, and how much of its time computation
// does not hide.
#pragma once

#include <array>
#include <cstddef>

#include "plan/model/constants.h"
#include "plan/model/exchange_time.h"
#include "plan/model/rank_share.h"
#include "plan/model/shards_time.h"
#include "plan/model/work.h"
#include "step/collective.h"

namespace assay::plan {

struct ReplicaExchange {
  step::CollectiveKind kind = step::CollectiveKind::kAllReduce;
  double bytes = 0;  // of the whole, each time
  RankAxis axis;
  double calls = 1;     // that the bytes are cut into
  double times = 1;     // per step
  bool hidden = false;  // some of it, behind the backward pass, where software does that
};

struct ReplicaExchanges {
  // Dense layers and experts with three each, and what Muon gathers; or what our trainer exchanges
  // of each after every micro-batch, and twice after the last.
  std::array<ReplicaExchange, 10> each;
  std::size_t count = 0;

  [[nodiscard]] const ReplicaExchange* begin() const { return each.data(); }
  [[nodiscard]] const ReplicaExchange* end() const { return each.data() + count; }
};

ReplicaExchanges replica_exchanges(const Work& work, const RankShare& rank,
                                   const TrainedParameters& parameters);

// Seconds of a rank's passes that gradients are reduced behind, and weights gathered.
struct HidingPasses {
  double forward = 0;
  double backward = 0;
};

// Seconds per step that are not hidden, with the time of adding gradients up where that is a
// separate pass (our trainer).
double gradients_seconds(const Work& work, const RankShare& rank,
                         const TrainedParameters& parameters, const HidingPasses& passes,
                         const Constants& constants);

}  // namespace assay::plan
