// Schedules of collectives, played message by message: every link carries one message at a time and
// delivers it a latency later. The oracle of the closed forms in src/plan/network/algorithms.cc.
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

namespace assay::plan::testing {

struct PlayedLink {
  double latency = 0;    // s
  double bandwidth = 0;  // bytes/s
};

// links[r] goes from rank r to the next. Every rank sends a piece of the bytes per step, and not
// before the one that it has to pass on is there.
inline double play_ring(const std::vector<PlayedLink>& links, double bytes, std::size_t steps) {
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
inline std::vector<int> binary_tree(int nodes) {
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
inline std::vector<int> other_tree(int nodes) {
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

}  // namespace assay::plan::testing
