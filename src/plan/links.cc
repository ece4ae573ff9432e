#include "plan/links.h"

#include "plan/links_time.h"

namespace assay::plan {
namespace {

// Host threads that each card needs where a node's cards hang on two sockets.
constexpr double kHostThreadsPerCard = 24;
constexpr double kUnlimited = 1e15;  // bytes per second

}  // namespace

Links links_of(const spec::ClusterSpec& cluster) {
  using spec::LinkKind;
  const spec::LinkSpec& link = cluster.link;
  Links links;
  links.per_node = static_cast<double>(cluster.devices_per_node);
  const bool everywhere = link.kind == LinkKind::kNvswitch || link.kind == LinkKind::kNvlinkMesh;
  // Between groups a ring goes over PCIe.
  const auto& slowest =
      link.kind == LinkKind::kNvlinkGroups && link.pcie ? link.pcie : link.bandwidth;
  if (slowest && link.kind != LinkKind::kNone) {
    set_inside(links, slowest->count(), everywhere, cluster.numa_nodes == 1);
  } else {
    links.inside = kUnlimited;
  }
  links.outside = cluster.network.bandwidth ? cluster.network.bandwidth->count() / links.per_node
                                            : links.inside;
  links.starved_host = cluster.cpus && cluster.numa_nodes.value_or(1) > 1 &&
                       static_cast<double>(*cluster.cpus) < kHostThreadsPerCard * links.per_node;
  return links;
}

}  // namespace assay::plan
