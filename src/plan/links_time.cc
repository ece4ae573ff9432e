#include "plan/links_time.h"

#include <algorithm>

namespace assay::plan {

// Latencies are NCCL's own, in microseconds (network_constants.h): LL's beginning with LL128's hops
// inside a node, Simple's between nodes.
RingPace ring_pace(double ranks, double apart, const Links& links, const Constants& constants) {
  RingPace pace;
  pace.bandwidth = links.inside * constants.coll_eff;
  if (ranks * apart <= links.per_node) {
    pace.latency = (6.6 + (ranks - 1) * 1.9) * 1e-6;
    return pace;
  }
  // As many ranks of the ring as a node has, so many networks can it use there.
  const double members = std::min(std::max(links.per_node / apart, 1.0), ranks);
  pace.bandwidth = std::min(pace.bandwidth, links.outside * constants.net_eff * members);
  const double nodes = std::max(1.0, ranks / links.per_node);
  pace.latency = (8.4 + (ranks - nodes) * 3.4 + nodes * 14.0) * 1e-6;
  return pace;
}

}  // namespace assay::plan
