// The closed forms of ring, tree and all-to-all (algorithms.cc) against schedules that are played
// message by message: every link carries one message at a time and delivers it a latency later.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

#include "plan/network/network.h"
#include "plan/testing/clusters.h"

namespace assay::plan {
namespace {

struct PlayedLink {
  double latency = 0;    // s
  double bandwidth = 0;  // bytes/s
};

// links[r] goes from rank r to the next. Every rank sends a piece of the bytes per step, and not
// before the one that it has to pass on is there.
double play_ring(const std::vector<PlayedLink>& links, double bytes, std::size_t steps) {
  const std::size_t ranks = links.size();
  const double piece = bytes / static_cast<double>(ranks);
  std::vector<double> arrived(ranks, 0);
  std::vector<double> link_free(ranks, 0);
  for (std::size_t step = 0; step < steps; ++step) {
    std::vector<double> next(ranks);
    for (std::size_t r = 0; r < ranks; ++r) {
      const double start = std::max(arrived[r], link_free[r]);
      link_free[r] = start + piece / links[r].bandwidth;
      next[(r + 1) % ranks] = link_free[r] + links[r].latency;
    }
    arrived = next;
  }
  return *std::max_element(arrived.begin(), arrived.end());
}

// The binary tree that has every odd node as a leaf; parent of the root is -1.
std::vector<int> binary_tree(int nodes) {
  std::vector<int> parent(static_cast<std::size_t>(nodes), -1);
  for (int node = 1; node < nodes; ++node) {
    int bit = 1;
    while ((node & bit) == 0) bit <<= 1;
    const int up = (node ^ bit) | (bit << 1);
    parent[static_cast<std::size_t>(node)] = up < nodes ? up : node ^ bit;
  }
  return parent;
}

// The same tree with the nodes renamed, so that leaves of one are inside the other.
std::vector<int> other_tree(int nodes) {
  const std::vector<int> first = binary_tree(nodes);
  std::vector<int> parent(first.size(), -1);
  const auto renamed = [&](int node) {
    return nodes % 2 == 0 ? nodes - 1 - node : (node + 1) % nodes;
  };
  for (int node = 0; node < nodes; ++node) {
    const int up = first[static_cast<std::size_t>(node)];
    parent[static_cast<std::size_t>(renamed(node))] = up < 0 ? -1 : renamed(up);
  }
  return parent;
}

// An all-reduce of half the bytes over each tree, in pieces. One link out of every node.
class TreePlay {
 public:
  TreePlay(int nodes, PlayedLink link, double bytes, int pieces)
      : link_(link), piece_(bytes / 2 / pieces), free_(static_cast<std::size_t>(nodes), 0) {
    trees_ = {binary_tree(nodes), other_tree(nodes)};
    for (std::size_t t = 0; t < trees_.size(); ++t) {
      for (int piece = 0; piece < pieces; ++piece) {
        for (int node = 0; node < nodes; ++node) {
          if (children(t, node).empty()) send_up({0, t, piece, node});
        }
      }
    }
  }

  double run() {
    while (!messages_.empty()) {
      const Message m = messages_.top();
      messages_.pop();
      double& free = free_[static_cast<std::size_t>(m.from)];
      free = std::max(free, m.ready) + piece_ / link_.bandwidth;
      deliver(m, free + link_.latency);
    }
    return end_;
  }

 private:
  struct Place {
    double time;
    std::size_t tree;
    int piece;
    int node;
  };
  struct Message {
    double ready;
    int piece;
    std::size_t tree;
    int from;
    int to;
    bool up;
    bool operator<(const Message& other) const {  // the earliest first
      return std::tie(ready, piece) > std::tie(other.ready, other.piece);
    }
  };

  [[nodiscard]] std::vector<int> children(std::size_t tree, int node) const {
    std::vector<int> found;
    for (std::size_t n = 0; n < trees_[tree].size(); ++n) {
      if (trees_[tree][n] == node) found.push_back(static_cast<int>(n));
    }
    return found;
  }

  void send_up(const Place& at) {
    const int parent = trees_[at.tree][static_cast<std::size_t>(at.node)];
    if (parent < 0) return send_down(at);
    messages_.push({at.time, at.piece, at.tree, at.node, parent, true});
  }

  void send_down(const Place& at) {
    end_ = std::max(end_, at.time);
    for (const int child : children(at.tree, at.node)) {
      messages_.push({at.time, at.piece, at.tree, at.node, child, false});
    }
  }

  void deliver(const Message& m, double time) {
    if (!m.up) return send_down({time, m.tree, m.piece, m.to});
    auto& [count, latest] = received_[{m.tree, m.piece, m.to}];
    latest = std::max(latest, time);
    if (++count == children(m.tree, m.to).size()) send_up({latest, m.tree, m.piece, m.to});
  }

  PlayedLink link_;
  double piece_;
  std::vector<double> free_;
  std::array<std::vector<int>, 2> trees_;
  std::priority_queue<Message> messages_;
  std::map<std::tuple<std::size_t, int, int>, std::pair<std::size_t, double>> received_;
  double end_ = 0;
};

using spec::LinkKind;
using step::CollectiveKind;
using testing::collective;
using testing::network_of;

// One algorithm, no protocols, hops that we set: what is left is the closed form.
NetworkConstants bare(Algorithm only, double inside_us, double between_us) {
  constexpr double kNever = 1e12;
  NetworkConstants c;
  c.ring_base.fill(only == Algorithm::kRing ? 0 : kNever);
  c.tree_base.fill(only == Algorithm::kTree ? 0 : kNever);
  for (ProtocolMicros* hop : {&c.nvlink.ring, &c.nvlink.tree}) hop->fill(inside_us);
  for (ProtocolMicros* hop : {&c.network.ring, &c.network.tree}) hop->fill(between_us);
  c.ring_share.fill(1);
  c.tree_share.fill(1);
  c.tree_ll128_share_of_nodes = 1;
  c.ll_limit.fill({1e9, 1e9, 1e9});
  c.nvls_share.fill(0);
  c.nvlink_share.fill(1);
  c.infiniband_share = 1;
  return c;
}

spec::ClusterSpec nodes_of(std::int64_t per_node, std::int64_t nodes, double between_gb) {
  auto cluster = testing::one_node(per_node, LinkKind::kNvswitch, 400);
  if (per_node == 1) cluster.link = {};
  return testing::with_network(cluster, nodes, between_gb);
}

constexpr std::int64_t kPlayedBytes = 1'000'000;

TEST(NetworkSchedule, ARingOfEqualLinksIsExact) {
  const auto constants = bare(Algorithm::kRing, 3, 10);
  for (const std::int64_t ranks : {2, 3, 5, 8}) {
    const Network network = network_of(nodes_of(ranks, 1, 1), constants);
    const std::vector<PlayedLink> links(static_cast<std::size_t>(ranks), {3e-6, 400e9});
    const auto steps = static_cast<std::size_t>(ranks - 1);
    const auto model = [&](CollectiveKind kind) {
      return network.time(collective(kind, kPlayedBytes), network.group(ranks)).total.count();
    };
    EXPECT_NEAR(model(CollectiveKind::kAllReduce), play_ring(links, kPlayedBytes, 2 * steps),
                1e-12);
    EXPECT_NEAR(model(CollectiveKind::kReduceScatter), play_ring(links, kPlayedBytes, steps),
                1e-12);
    EXPECT_NEAR(model(CollectiveKind::kAllGather), play_ring(links, kPlayedBytes, steps), 1e-12);
  }
}

// Over nodes the model adds the farthest way and the slowest link, which no schedule exceeds, and
// which is exact where one of the two is all there is.
TEST(NetworkSchedule, ARingOverNodesIsBounded) {
  for (const std::int64_t per_node : {1, 2, 3, 4, 8}) {
    for (const std::int64_t nodes : {2, 3, 5}) {
      for (const double between_gb : {50.0, 400.0, 1600.0}) {
        for (const double hops_us : {0.0, 5.0, 500.0}) {
          const auto constants = bare(Algorithm::kRing, hops_us / 4, hops_us);
          const Network network = network_of(nodes_of(per_node, nodes, between_gb), constants);
          const std::int64_t ranks = per_node * nodes;
          std::vector<PlayedLink> links;
          for (std::int64_t r = 0; r < ranks; ++r) {
            const bool leaves = (r + 1) % per_node == 0;
            links.push_back(leaves ? PlayedLink{hops_us * 1e-6, between_gb * 1e9}
                                   : PlayedLink{hops_us * 0.25e-6, 400e9});
          }
          const double played =
              play_ring(links, kPlayedBytes, static_cast<std::size_t>(2 * (ranks - 1)));
          const CollectiveTime t = network.time(
              collective(CollectiveKind::kAllReduce, kPlayedBytes), network.group(ranks));
          EXPECT_LE(played, t.total.count() * (1 + 1e-9)) << per_node << ' ' << nodes;
          EXPECT_GE(played, t.transfer.count() * (1 - 1e-9));
          // With two ranks in a node one of the two hops that are skipped is between nodes.
          EXPECT_GE(played, t.latency.count() - hops_us * 1e-6);
        }
      }
    }
  }
}

TEST(NetworkSchedule, ATreesLatencyIsItsDepthTwice) {
  const auto constants = bare(Algorithm::kTree, 1, 7);
  for (const int nodes : {2, 3, 4, 5, 8, 13, 16}) {
    const Network network = network_of(nodes_of(1, nodes, 1e6), constants);
    const auto t = network.time(collective(CollectiveKind::kAllReduce, 2), network.group(nodes));
    EXPECT_NEAR(TreePlay(nodes, {7e-6, 1e15}, 2, 1).run(), t.latency.count(), 1e-9) << nodes;
  }
}

// Inner nodes send everything twice, unless there are two nodes; with three no node quite does. The
// rest is the way of the first piece.
TEST(NetworkSchedule, ATreesTransferIsWhatItsBusiestNodeSends) {
  const auto constants = bare(Algorithm::kTree, 0, 0);
  for (const int nodes : {2, 3, 4, 5, 8, 13, 16}) {
    const Network network = network_of(nodes_of(1, nodes, 50), constants);
    const auto t =
        network.time(collective(CollectiveKind::kAllReduce, kPlayedBytes), network.group(nodes));
    const double played = TreePlay(nodes, {0, 50e9}, kPlayedBytes, 256).run();
    EXPECT_LE(played, t.transfer.count() * 1.15) << nodes;
    EXPECT_GE(played, t.transfer.count() * 0.74) << nodes;
  }
}

// Every message of an all-to-all put on every link that it crosses, for all groups of a stride.
double play_all_to_all(int per_node, int nodes, int stride, const Network& network) {
  const int devices = per_node * nodes;
  const int ranks = devices / stride;  // of each of `stride` groups
  std::map<std::pair<TierKind, int>, double> load;
  for (int from = 0; from < devices; ++from) {
    for (int to = from % stride; to < devices; to += stride) {
      const double bytes = static_cast<double>(kPlayedBytes) / ranks;
      if (to == from) continue;
      if (from / per_node != to / per_node) {
        load[{TierKind::kNetwork, from / per_node}] += bytes;
        continue;
      }
      for (const Tier& tier : network.tiers()) {
        const auto domain = static_cast<int>(tier.devices);
        if (from / domain != to / domain) continue;
        const bool shared = tier.kind == TierKind::kSockets;
        load[{tier.kind, shared ? from / (domain / 2) : from}] += bytes;
        break;
      }
    }
  }
  double slowest = 0;
  for (const Tier& tier : network.tiers()) {
    for (const auto& [link, bytes] : load) {
      if (link.first == tier.kind) slowest = std::max(slowest, bytes / tier.achievable.count());
    }
  }
  return slowest;
}

TEST(NetworkSchedule, AnAllToAllTakesWhatItsBusiestLinkTakes) {
  for (const char* preset : {"h100-sxm-8", "h100-nvl-8", "h100-pcie-8"}) {
    for (const int nodes : {1, 2, 5}) {
      for (const int stride : {1, 2, 4, 8}) {
        if (nodes == 1 && stride == 8) continue;
        const Network network =
            network_of(testing::with_network(testing::preset_cluster(preset), nodes, 200));
        const auto t = network.time(collective(CollectiveKind::kAllToAll, kPlayedBytes),
                                    network.group(8 * nodes / stride, stride));
        const double share = t.protocol == Protocol::kLl ? 0.5 : 1;
        EXPECT_NEAR(t.transfer.count() * share, play_all_to_all(8, nodes, stride, network), 1e-12)
            << preset << ' ' << nodes << ' ' << stride;
      }
    }
  }
}

}  // namespace

}  // namespace assay::plan
