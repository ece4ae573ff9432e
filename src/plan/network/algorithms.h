// AlgorithmChoice: the quickest of the algorithms and protocols that a collective may use. Internal
// to src/plan.
//
// What each puts on the links, of S bytes over n ranks that are spread over N nodes:
//   ring       every link carries 2 (n-1)/n S of an all-reduce, half of that of a scatter or gather
//   tree       a chain inside the node, whose inner ranks send S up and S down; two complementary
//              binary trees between nodes, where a node is inner in one and leaf in the other: 2 S,
//              or S when there are two nodes
//   nvls       switches read S from each rank and write S/n of sums to it; then the other way round
//   nvls-tree  nvls inside nodes, trees between them
//   pairs      each rank's S/n to every other, over all tiers at once
#pragma once

#include <array>
#include <span>

#include "plan/network/network.h"

namespace assay::plan {

// One tier as a group uses it.
struct Crossing {
  const Tier* tier = nullptr;
  double ring_bandwidth = 0;     // bytes/s that rings of the group have from domain to domain
  double pair_bandwidth = 0;     // bytes/s from one rank to one other
  double edges = 0;              // hops of this kind in one lap over all ranks
  double edges_inside_node = 0;  // in a chain over one node's ranks
  double below = 1;              // the group's ranks in a domain below this tier
  double within = 1;             // in a domain above it
};

// The links that one group crosses, and what it has of each.
class GroupLinks {
 public:
  GroupLinks(const Network& network, const RankGroup& group, const LinkShares& shares);

  // Innermost first; those that the group does not cross are left out.
  [[nodiscard]] std::span<const Crossing> crossings() const { return {crossings_.data(), count_}; }
  // The slowest link inside a node, and between nodes, for rings; infinite where none is crossed.
  [[nodiscard]] double inside() const { return inside_; }
  [[nodiscard]] double between() const { return between_; }
  [[nodiscard]] bool allows(Protocol protocol) const {
    return protocol != Protocol::kLl128 || ll128_;
  }

 private:
  [[nodiscard]] Crossing crossing(const Network& network, const RankGroup& group, const Tier& tier,
                                  double below, const LinkShares& shares) const;

  std::array<Crossing, 4> crossings_{};
  std::size_t count_ = 0;
  double inside_ = 0;
  double between_ = 0;
  bool ll128_ = true;
};

struct AlgorithmCandidate {
  double latency_us = 0;
  double transfer_s = 0;
  Algorithm algorithm = Algorithm::kNone;
  Protocol protocol = Protocol::kSimple;

  [[nodiscard]] double total_s() const { return latency_us * 1e-6 + transfer_s; }
};

class AlgorithmChoice {
 public:
  // Of `bytes` over the group, whose links these are. Both must outlive it.
  AlgorithmChoice(const NetworkConstants& constants, const GroupLinks& links,
                  const RankGroup& group, LinkGeneration generation, double bytes);

  // What may be used; `traffic` are the bytes over every link, in `passes` laps.
  void ring(double passes, double traffic);
  void tree();              // of an all-reduce
  void nvls(double share);  // likewise, where switches reach so much of their links
  void all_to_all();
  void send();

  [[nodiscard]] const AlgorithmCandidate& best() const { return best_; }

 private:
  void pairs(double transfer_s, double posts_us);
  void consider(const AlgorithmCandidate& candidate);
  [[nodiscard]] double limited(Protocol protocol, double bandwidth) const;
  [[nodiscard]] double levels() const;     // of a binary tree over the nodes
  [[nodiscard]] double tree_load() const;  // how often a node sends everything

  const NetworkConstants& constants_;
  const GroupLinks& links_;
  double bytes_;
  double ranks_;
  double per_node_;
  std::int64_t nodes_;
  double ll_limit_;
  AlgorithmCandidate best_;
};

}  // namespace assay::plan
