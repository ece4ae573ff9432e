// Network: what a cluster's links do to collectives. Built once from a ClusterSpec; after that
// every question is arithmetic over at most four tiers of links, however many ranks there are.
//
//   ASSAY_TRY(const Network network, Network::of(job.cluster));
//   const RankGroup fsdp = network.group(job.layout.fsdp, /*stride=*/job.layout.tp);
//   const CollectiveTime t = network.time(gather, fsdp);   // t.total, t.algorithm, …
//
// The model is NCCL's own, t = latency + bytes / bandwidth, as small as any algorithm and protocol
// makes it, where the algorithms' traffic is counted link by link. It prices a collective that has
// the links to itself and to its like: all groups of the same kind work at the same time, so a
// group has its ranks' share of what a node shares. A caller that computes at the same time passes
// LinkShares to say what that leaves.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.h"
#include "base/units.h"
#include "plan/network/constants.h"
#include "spec/cluster.h"
#include "step/collective.h"

namespace assay::plan {

enum class TierKind : std::uint8_t { kNvlink, kPcie, kSockets, kNetwork };

// Links between domains: a domain of a tier is what the tiers below connect.
struct Tier {
  TierKind kind = TierKind::kNvlink;
  std::int64_t devices = 1;         // in one domain above this tier
  base::BytesPerSecond nominal;     // per device and direction; kNetwork: per node
  base::BytesPerSecond achievable;  // by collectives; kSockets: by all of a node's together
  HopLatency hop{};                 // us
};

// Ranks that do a collective together: every `stride`-th of consecutive ranks, and ranks fill node
// after node. What is innermost in a layout has stride 1.
struct RankGroup {
  std::int64_t ranks = 1;
  std::int64_t per_node = 1;  // of its ranks on one node
  std::int64_t stride = 1;

  [[nodiscard]] std::int64_t nodes() const { return (ranks + per_node - 1) / per_node; }
};

enum class Algorithm : std::uint8_t {
  kNone,  // nothing is sent
  kRing,
  kTree,
  kNvls,      // switches reduce and multicast
  kNvlsTree,  // that inside nodes, a tree between them
  kPairs,     // every rank to every other, or to one
};

std::string_view to_text(Algorithm algorithm);
std::string_view to_text(Protocol protocol);
std::string_view to_text(TierKind kind);

// Fractions of its links' bandwidth that a collective reaches while a step computes beside it,
// relative to a collective that runs alone.
struct LinkShares {
  double nvlink = 1;
  double host = 1;  // PCIe, and what is between sockets
  double network = 1;
};

struct CollectiveTime {
  base::Seconds total;                 // latency + transfer
  base::Seconds latency;               // what no bandwidth would help
  base::Seconds transfer;              // bytes over the slowest link
  base::BytesPerSecond bus_bandwidth;  // as nccl-tests counts: sent_bytes / total
  Algorithm algorithm = Algorithm::kNone;
  Protocol protocol = Protocol::kSimple;
};

class Network {
 public:
  Network() = default;  // of a single device
  // A usage error if the cluster lacks the speed of a link that it needs.
  static base::Result<Network> of(const spec::ClusterSpec& cluster,
                                  const NetworkConstants& constants = {});

  // Innermost first; empty for a single device.
  [[nodiscard]] std::span<const Tier> tiers() const { return {tiers_.data(), count_}; }
  [[nodiscard]] std::int64_t devices_per_node() const { return devices_per_node_; }
  // Whether switches between a node's devices can reduce.
  [[nodiscard]] bool has_nvls() const { return nvls_share_ > 0; }

  // `ranks` ranks, `stride` apart. May be more than the cluster has: a search asks about others.
  [[nodiscard]] RankGroup group(std::int64_t ranks, std::int64_t stride = 1) const;

  // How long the group takes; its ranks count, not the collective's. One rank, or nothing to send,
  // takes no time. kSendReceive is from one rank of the group to the next, over the slowest link
  // that two neighbours have between them. For a group beyond one node the cluster must have a
  // network.
  [[nodiscard]] CollectiveTime time(const step::Collective& collective,
                                    const RankGroup& group) const;
  // The same of any number of bytes, of the whole.
  [[nodiscard]] CollectiveTime time(step::CollectiveKind kind, double bytes, const RankGroup& group,
                                    const LinkShares& shares = {}) const;

 private:
  void add(const Tier& tier) { tiers_[count_++] = tier; }

  NetworkConstants constants_;
  std::array<Tier, 4> tiers_{};
  std::size_t count_ = 0;
  std::int64_t devices_per_node_ = 1;
  std::int64_t ports_ = 0;  // per node; 0: not known
  bool mesh_ = false;       // a pair has a part of its devices' NVLinks, not all of them
  bool ll128_ = false;      // whether LL128 works between nodes
  LinkGeneration generation_ = LinkGeneration::kHopper;
  double nvls_share_ = 0;

  friend class GroupLinks;
};

}  // namespace assay::plan
