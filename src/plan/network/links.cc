#include "plan/network/links.h"

#include <algorithm>
#include <limits>

namespace assay::plan {
namespace {

// How many of the group are among so many consecutive devices of a node.
double ranks_among(const Group& group, std::int64_t devices) {
  return static_cast<double>(std::clamp<std::int64_t>(devices / group.stride, 1, group.per_node));
}

double share_of(TierKind kind, const LinkShares& shares) {
  if (kind == TierKind::kNvlink) return shares.nvlink;
  return kind == TierKind::kNetwork ? shares.network : shares.host;
}

}  // namespace

// Groups of one kind fill the node, so there are devices / per_node of them beside each other.
Crossing GroupLinks::crossing(const Network& network, const Group& group, const Tier& tier,
                              double below, const LinkShares& shares) const {
  const bool network_tier = tier.kind == TierKind::kNetwork;
  const auto ranks = static_cast<double>(group.ranks);
  const auto devices = static_cast<double>(network.devices_per_node_);
  const double share_of_node = static_cast<double>(group.per_node) / devices;

  Crossing c{.tier = &tier, .below = below};
  c.within = network_tier ? ranks : ranks_among(group, tier.devices);
  c.edges = ranks / below - ranks / c.within;
  c.edges_inside_node = network_tier ? 0
                                     : static_cast<double>(group.per_node) / below -
                                           static_cast<double>(group.per_node) / c.within;
  c.ring_bandwidth = share_of(tier.kind, shares) * tier.achievable.count();
  c.pair_bandwidth = c.ring_bandwidth;
  switch (tier.kind) {
    case TierKind::kNvlink:
      if (network.mesh_) {  // only the links to the group's own devices carry anything
        // Computation takes its share of what a device can move, not of what a wire can.
        const double wire = tier.achievable.count() / static_cast<double>(tier.devices - 1);
        c.ring_bandwidth = std::min(c.ring_bandwidth, wire * (c.within - 1));
        c.pair_bandwidth = std::min(c.pair_bandwidth, wire);
      }
      break;
    case TierKind::kPcie:
      break;
    case TierKind::kSockets:
      c.ring_bandwidth *= std::min(1.0, share_of_node);
      c.pair_bandwidth = c.ring_bandwidth;
      break;
    case TierKind::kNetwork:
      c.ring_bandwidth *= std::min(1.0, share_of_node);
      c.pair_bandwidth = c.ring_bandwidth;
      if (network.ports_ > 0) {
        const double port = share_of(tier.kind, shares) * tier.achievable.count() /
                            static_cast<double>(network.ports_);
        // A device alone in its node drives all ports.
        if (network.devices_per_node_ > 1) c.pair_bandwidth = std::min(c.pair_bandwidth, port);
      }
      break;
  }
  return c;
}

GroupLinks::GroupLinks(const Network& network, const Group& group, const LinkShares& shares)
    : inside_(std::numeric_limits<double>::infinity()), between_(inside_) {
  double below = 1;
  for (const Tier& tier : network.tiers()) {
    const bool network_tier = tier.kind == TierKind::kNetwork;
    const Crossing c = crossing(network, group, tier, below, shares);
    if (c.within <= below) continue;
    double& slowest = network_tier ? between_ : inside_;
    slowest = std::min(slowest, c.ring_bandwidth);
    ll128_ = ll128_ && (network_tier ? network.ll128_ : tier.kind == TierKind::kNvlink);
    crossings_[count_++] = c;
    below = c.within;
  }
  // A ring closes over the outermost links.
  if (count_ > 0) crossings_[count_ - 1].edges += 1;
}

}  // namespace assay::plan
