#include "plan/model/cluster_links.h"

#include <fmt/format.h>

namespace assay::plan {
namespace {

// A card whose processes have this many is not waited for: 31 were enough, 20 were not.
constexpr double kEnoughThreads = 24;

}  // namespace

base::Result<Links> links_of(const spec::ClusterSpec& cluster) {
  // A search may ask for more nodes than were described.
  if (cluster.nodes > 1 && cluster.network.kind == spec::NetworkKind::kNone) {
    return base::fail(base::usage_error("cluster.network.kind",
                                        fmt::format("{} nodes without a network", cluster.nodes),
                                        "describe [cluster.network]"));
  }
  Links links;
  ASSAY_TRY(links.network, Network::of(cluster));
  if (cluster.cpus && cluster.unpinned && cluster.numa_nodes.value_or(1) > 1) {
    const double each = static_cast<double>(*cluster.cpus) / links.per_node();
    if (each < kEnoughThreads) links.scarce_threads = each;
  }
  return links;
}

}  // namespace assay::plan
