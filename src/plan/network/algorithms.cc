#include "plan/network/algorithms.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace assay::plan {
namespace {

constexpr std::array<Protocol, kProtocols> kEveryProtocol = {Protocol::kLl, Protocol::kLl128,
                                                             Protocol::kSimple};

double ll_limit_of(const LlLimit& limit, std::int64_t nodes) {
  if (nodes > 2) return limit.more_nodes * 1e9;
  return (nodes == 2 ? limit.two_nodes : limit.one_node) * 1e9;
}

// How many ranks of the group are among `devices` consecutive devices of a node.
double ranks_among(const RankGroup& group, std::int64_t devices) {
  return static_cast<double>(std::clamp<std::int64_t>(devices / group.stride, 1, group.per_node));
}

double share_of(TierKind kind, const LinkShares& shares) {
  if (kind == TierKind::kNvlink) return shares.nvlink;
  return kind == TierKind::kNetwork ? shares.network : shares.host;
}

}  // namespace

AlgorithmChoice::AlgorithmChoice(const NetworkConstants& constants, const GroupLinks& links,
                                 const RankGroup& group, LinkGeneration generation, double bytes)
    : constants_(constants),
      links_(links),
      bytes_(bytes),
      ranks_(static_cast<double>(group.ranks)),
      per_node_(static_cast<double>(std::min(group.per_node, group.ranks))),
      nodes_(group.nodes()),
      ll_limit_(ll_limit_of(constants.ll_limit[static_cast<std::size_t>(generation)], nodes_)) {}

void AlgorithmChoice::ring(double passes, double traffic) {
  for (const Protocol protocol : kEveryProtocol) {
    if (!links_.allows(protocol)) continue;
    const auto p = static_cast<std::size_t>(protocol);
    double lap = 0;
    double quickest = links_.crossings().front().tier->hop.ring[p];
    for (const Crossing& c : links_.crossings()) {
      lap += c.edges * c.tier->hop.ring[p];
      quickest = std::min(quickest, c.tier->hop.ring[p]);
    }
    // The piece that has the farthest way skips the quickest hop of each lap.
    const double latency = constants_.ring_base[p] + passes * (lap - quickest);
    const double link = std::min(links_.inside(), links_.between()) * constants_.ring_share[p];
    consider({latency, traffic / limited(protocol, link), Algorithm::kRing, protocol});
  }
}

void AlgorithmChoice::tree() {
  for (const Protocol protocol : kEveryProtocol) {
    if (!links_.allows(protocol)) continue;
    const auto p = static_cast<std::size_t>(protocol);
    double one_way = 0;
    for (const Crossing& c : links_.crossings()) {
      const bool network = c.tier->kind == TierKind::kNetwork;
      one_way += c.tier->hop.tree[p] * (network ? levels() : c.edges_inside_node);
    }
    const bool across_ll128 = protocol == Protocol::kLl128 && nodes_ > 1;
    const double share =
        across_ll128 ? constants_.tree_ll128_share_of_nodes : constants_.tree_share[p];
    const double chain = per_node_ > 2 ? 2 : per_node_ - 1;
    const double inside = chain * bytes_ / limited(protocol, links_.inside() * share);
    const double between = tree_load() * bytes_ / limited(protocol, links_.between() * share);
    consider({constants_.tree_base[p] + 2 * one_way, std::max(inside, between), Algorithm::kTree,
              protocol});
  }
}

void AlgorithmChoice::nvls(double share) {
  if (per_node_ <= 2) return;  // NCCL does not, and would gain nothing
  const double inside = bytes_ * (1 + 1 / per_node_) / (links_.inside() * share);
  if (nodes_ == 1) {
    consider({constants_.nvls_us, inside, Algorithm::kNvls, Protocol::kSimple});
    return;
  }
  const double latency = constants_.nvls_us + 2 * levels() * constants_.nvls_tree_network_us;
  const double between = tree_load() * bytes_ / links_.between();
  consider({latency, std::max(inside, between), Algorithm::kNvlsTree, Protocol::kSimple});
}

void AlgorithmChoice::all_to_all() {
  double slowest = 0;
  for (const Crossing& c : links_.crossings()) {
    // To those in the same domain above this tier, but not in the same one below it.
    const double out = bytes_ * (c.within - c.below) / ranks_;
    const bool shared = c.tier->kind == TierKind::kSockets || c.tier->kind == TierKind::kNetwork;
    const double senders = shared ? std::min(c.below, per_node_) : 1;
    slowest = std::max(slowest, out * senders / c.ring_bandwidth);
  }
  const double posts = constants_.post_inside_us * (per_node_ - 1) +
                       constants_.post_network_us * (ranks_ - per_node_);
  pairs(slowest, posts);
}

void AlgorithmChoice::send() {
  double slowest = 0;
  for (const Crossing& c : links_.crossings()) {
    slowest = std::max(slowest, bytes_ / c.pair_bandwidth);
  }
  pairs(slowest, 0);
}

// NCCL sends from rank to rank with LL or Simple.
void AlgorithmChoice::pairs(double transfer_s, double posts_us) {
  for (const Protocol protocol : {Protocol::kLl, Protocol::kSimple}) {
    const auto p = static_cast<std::size_t>(protocol);
    double hop = 0;
    for (const Crossing& c : links_.crossings()) hop = std::max(hop, c.tier->hop.ring[p]);
    const double time = transfer_s / constants_.ring_share[p];
    consider({constants_.ring_base[p] + hop + posts_us, time, Algorithm::kPairs, protocol});
  }
}

void AlgorithmChoice::consider(const AlgorithmCandidate& candidate) {
  if (best_.algorithm == Algorithm::kNone || candidate.total_s() < best_.total_s()) {
    best_ = candidate;
  }
}

double AlgorithmChoice::limited(Protocol protocol, double bandwidth) const {
  return protocol == Protocol::kLl ? std::min(bandwidth, ll_limit_) : bandwidth;
}

double AlgorithmChoice::levels() const {
  return static_cast<double>(std::bit_width(static_cast<std::uint64_t>(nodes_ - 1)));
}

double AlgorithmChoice::tree_load() const {
  if (nodes_ > 2) return 2;
  return nodes_ == 2 ? 1 : 0;
}

// Groups of one kind fill the node, so there are devices / per_node of them beside each other.
Crossing GroupLinks::crossing(const Network& network, const RankGroup& group, const Tier& tier,
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

GroupLinks::GroupLinks(const Network& network, const RankGroup& group, const LinkShares& shares)
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
