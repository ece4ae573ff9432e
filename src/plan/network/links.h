// GroupLinks: the links that one group crosses, and what it has of each. Internal to src/plan.
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

class GroupLinks {
 public:
  GroupLinks(const Network& network, const Group& group, const LinkShares& shares);

  // Innermost first; those that the group does not cross are left out.
  [[nodiscard]] std::span<const Crossing> crossings() const { return {crossings_.data(), count_}; }
  // The slowest link inside a node, and between nodes, for rings; infinite where none is crossed.
  [[nodiscard]] double inside() const { return inside_; }
  [[nodiscard]] double between() const { return between_; }
  [[nodiscard]] bool allows(Protocol protocol) const {
    return protocol != Protocol::kLl128 || ll128_;
  }

 private:
  [[nodiscard]] Crossing crossing(const Network& network, const Group& group, const Tier& tier,
                                  double below, const LinkShares& shares) const;

  std::array<Crossing, 4> crossings_{};
  std::size_t count_ = 0;
  double inside_ = 0;
  double between_ = 0;
  bool ll128_ = true;
};

}  // namespace assay::plan
