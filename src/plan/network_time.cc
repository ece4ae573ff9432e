// How long a collective takes: the least over what NCCL can choose from.
//
// Candidates count traffic, not wishes. Of S bytes over n ranks, k of them on each of N nodes:
//   ring       every link carries 2 (n-1)/n S of an all-reduce, half of that of a scatter or gather
//   tree       a chain inside the node, whose inner ranks send S up and S down; two complementary
//              binary trees between nodes, where a node is inner in one and leaf in the other: 2 S,
//              or S when there are two nodes
//   nvls       switches read S from each rank and write S/n of sums to it; then the other way round
//   nvls-tree  nvls inside nodes, trees between them
//   pairs      each rank's S/n to every other, over all tiers at once
#include <algorithm>
#include <bit>

#include "base/check.h"
#include "plan/network_links.h"

namespace assay::plan {
namespace {

using step::CollectiveKind;

constexpr std::array<Protocol, kProtocols> kEveryProtocol = {Protocol::kLl, Protocol::kLl128,
                                                             Protocol::kSimple};

struct AlgorithmCandidate {
  double latency_us = 0;
  double transfer_s = 0;
  Algorithm algorithm = Algorithm::kNone;
  Protocol protocol = Protocol::kSimple;

  [[nodiscard]] double total_s() const { return latency_us * 1e-6 + transfer_s; }
};

class AlgorithmChoice {
 public:
  AlgorithmChoice(const NetworkConstants& constants, const GroupLinks& links, const Group& group,
                  LinkGeneration generation, double bytes)
      : constants_(constants), links_(links), bytes_(bytes) {
    ranks_ = static_cast<double>(group.ranks);
    per_node_ = static_cast<double>(std::min(group.per_node, group.ranks));
    nodes_ = group.nodes();
    const LlLimit& limit = constants.ll_limit[static_cast<std::size_t>(generation)];
    ll_limit_ = 1e9 * (nodes_ == 1   ? limit.one_node
                       : nodes_ == 2 ? limit.two_nodes
                                     : limit.more_nodes);
  }

  [[nodiscard]] AlgorithmCandidate best() const { return best_; }

  // `passes` times around, with `traffic` bytes over every link.
  void ring(double passes, double traffic) {
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

  void tree() {
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

  void nvls(double share) {
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

  void all_to_all() {
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

  void send() {
    double slowest = 0;
    for (const Crossing& c : links_.crossings()) {
      slowest = std::max(slowest, bytes_ / c.pair_bandwidth);
    }
    pairs(slowest, 0);
  }

 private:
  // NCCL sends from rank to rank with LL or Simple.
  void pairs(double transfer_s, double posts_us) {
    for (const Protocol protocol : {Protocol::kLl, Protocol::kSimple}) {
      const auto p = static_cast<std::size_t>(protocol);
      double hop = 0;
      for (const Crossing& c : links_.crossings()) hop = std::max(hop, c.tier->hop.ring[p]);
      const double time = transfer_s / constants_.ring_share[p];
      consider({constants_.ring_base[p] + hop + posts_us, time, Algorithm::kPairs, protocol});
    }
  }

  void consider(const AlgorithmCandidate& candidate) {
    if (best_.algorithm == Algorithm::kNone || candidate.total_s() < best_.total_s()) {
      best_ = candidate;
    }
  }

  [[nodiscard]] double limited(Protocol protocol, double bandwidth) const {
    return protocol == Protocol::kLl ? std::min(bandwidth, ll_limit_) : bandwidth;
  }
  // Of a binary tree over the nodes.
  [[nodiscard]] double levels() const {
    return static_cast<double>(std::bit_width(static_cast<std::uint64_t>(nodes_ - 1)));
  }
  // How often a node sends everything.
  [[nodiscard]] double tree_load() const { return nodes_ > 2 ? 2.0 : nodes_ == 2 ? 1.0 : 0.0; }

  const NetworkConstants& constants_;
  const GroupLinks& links_;
  double bytes_ = 0;
  double ranks_ = 1;
  double per_node_ = 1;
  std::int64_t nodes_ = 1;
  double ll_limit_ = 0;
  AlgorithmCandidate best_;
};

}  // namespace

CollectiveTime Network::time(const step::Collective& collective, const Group& group) const {
  const auto bytes = static_cast<double>(collective.bytes());
  if (group.ranks <= 1 || bytes <= 0) return {};
  const bool has_network = count_ > 0 && tiers_[count_ - 1].kind == TierKind::kNetwork;
  ASSAY_CHECK(has_network || group.nodes() == 1, "a group over nodes without a network");
  const GroupLinks links(*this, group);
  AlgorithmChoice choice(constants_, links, group, generation_, bytes);
  const auto ranks = static_cast<double>(group.ranks);
  const double part = bytes * (ranks - 1) / ranks;
  double sent = part;
  switch (collective.kind) {
    case CollectiveKind::kAllReduce:
      sent = 2 * part;
      choice.ring(2, sent);
      choice.tree();
      if (has_nvls()) choice.nvls(nvls_share_);
      break;
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kAllGather:
      choice.ring(1, sent);
      break;
    case CollectiveKind::kBroadcast:
      sent = bytes;
      choice.ring(1, sent);
      break;
    case CollectiveKind::kAllToAll:
      choice.all_to_all();
      break;
    case CollectiveKind::kSendReceive:
      sent = bytes;
      choice.send();
      break;
  }
  const AlgorithmCandidate best = choice.best();
  CollectiveTime time;
  time.latency = base::Seconds(best.latency_us * 1e-6);
  time.transfer = base::Seconds(best.transfer_s);
  time.total = time.latency + time.transfer;
  time.bus_bandwidth = base::BytesPerSecond(sent / time.total.count());
  time.algorithm = best.algorithm;
  time.protocol = best.protocol;
  return time;
}

}  // namespace assay::plan
