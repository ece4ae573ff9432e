// AlgorithmChoice: the quickest of the algorithms and protocols that a collective may use. Internal
// to src/plan.
//
// Each counts traffic, not wishes. Of S bytes over n ranks, on each of N nodes some:
//   ring       every link carries 2 (n-1)/n S of an all-reduce, half of that of a scatter or gather
//   tree       a chain inside the node, whose inner ranks send S up and S down; two complementary
//              binary trees between nodes, where a node is inner in one and leaf in the other: 2 S,
//              or S when there are two nodes
//   nvls       switches read S from each rank and write S/n of sums to it; then the other way round
//   nvls-tree  nvls inside nodes, trees between them
//   pairs      each rank's S/n to every other, over all tiers at once
#pragma once

#include "plan/network/links.h"

namespace assay::plan {

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
  AlgorithmChoice(const NetworkConstants& constants, const GroupLinks& links, const Group& group,
                  LinkGeneration generation, double bytes);

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
