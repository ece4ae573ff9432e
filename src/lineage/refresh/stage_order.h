// StageOrder: an order in which the stages of a project can be run again, and which of them must
// not run at the same time. Pure.
#pragma once

#include <cstddef>
#include <set>
#include <vector>

#include "lineage/graph/live_stages.h"

namespace assay::lineage {

// Stages are indices into LiveStages::runs().
class StageOrder {
 public:
  explicit StageOrder(const LiveStages& stages);

  // All stages: each after those that feed it, and stages that change the same file in the order of
  // their numbers. Where stages feed each other in a cycle, the lowest number comes first.
  [[nodiscard]] const std::vector<std::size_t>& order() const { return order_; }

  // The stages that come earlier in the order and share a file with this one that either of the two
  // changes: what they leave depends on which runs first. Stages without such a pair are
  // independent. Sorted.
  [[nodiscard]] const std::vector<std::size_t>& before(std::size_t stage) const {
    return before_[stage];
  }

  // These stages and all that directly or indirectly produce their inputs.
  [[nodiscard]] std::set<std::size_t> with_makers(const std::vector<std::size_t>& stages) const;

 private:
  std::vector<std::size_t> order_;
  std::vector<std::vector<std::size_t>> before_;
  std::vector<std::vector<std::size_t>> makers_;  // of a stage's inputs; a subset of before_
};

}  // namespace assay::lineage
