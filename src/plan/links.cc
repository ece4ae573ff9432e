#include "plan/links.h"

#include <algorithm>

namespace assay::plan {
namespace {

constexpr double kNvlinkRing = 0.81;      // of nominal: NCCL's tables for rings over NVLink
constexpr double kPcieRing = 0.45;        // of nominal, through root complexes
constexpr double kFastestPcie = 64e9;     // generation 5, 16 lanes
constexpr double kSlowestNvlink = 100e9;  // what is below is PCIe
// Host threads that each card needs where a node's cards are on two sockets.
constexpr double kThreadsPerCard = 24;

}  // namespace

double ring_inside(double link, bool everywhere) {
  if (everywhere && link > kSlowestNvlink) return kNvlinkRing * link;
  return kPcieRing * std::min(link, kFastestPcie);
}

Links links_of(const spec::ClusterSpec& cluster) {
  Links links;
  links.per_node = static_cast<double>(cluster.devices_per_node);
  const bool everywhere = cluster.link.kind == spec::LinkKind::kNvswitch ||
                          cluster.link.kind == spec::LinkKind::kNvlinkMesh;
  // Between groups, the ring goes over PCIe.
  const auto& slowest = cluster.link.kind == spec::LinkKind::kNvlinkGroups && cluster.link.pcie
                            ? cluster.link.pcie
                            : cluster.link.bandwidth;
  if (slowest) links.inside = ring_inside(slowest->count(), everywhere);
  if (cluster.network.bandwidth) {
    links.outside = cluster.network.bandwidth->count() / links.per_node;
  }
  // What does not exist limits nothing.
  if (links.inside == 0) links.inside = links.outside > 0 ? links.outside : kFastestPcie;
  if (links.outside == 0) links.outside = links.inside;
  links.starved_host = cluster.cpus && cluster.numa_nodes.value_or(1) > 1 &&
                       static_cast<double>(*cluster.cpus) < kThreadsPerCard * links.per_node;
  return links;
}

}  // namespace assay::plan
