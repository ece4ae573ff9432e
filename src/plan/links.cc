#include "plan/links.h"

#include <fmt/format.h>

namespace assay::plan {
namespace {

// Host threads that each card needs where a node's cards hang on two sockets.
constexpr double kHostThreadsPerCard = 24;

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
  links.starved_host = cluster.cpus && cluster.numa_nodes.value_or(1) > 1 &&
                       static_cast<double>(*cluster.cpus) < kHostThreadsPerCard * links.per_node();
  return links;
}

}  // namespace assay::plan
