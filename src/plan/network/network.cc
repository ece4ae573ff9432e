// A cluster's description as tiers of links, innermost first.
#include "plan/network/network.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"
#include "plan/network/algorithms.h"

namespace assay::plan {
namespace {

// Specs give the speed of NVLink but not its generation, which follows from the device. Those
// without fp8 are Ampere or older; Hopper has 2e15 operations per second in it and
// Blackwell 4.5e15.
LinkGeneration generation_of(const spec::DeviceSpec& device) {
  if (!device.fp8) return LinkGeneration::kAmpere;
  constexpr double kMostOfHopper = 3e15;
  return device.fp8->count() > kMostOfHopper ? LinkGeneration::kBlackwell : LinkGeneration::kHopper;
}

double network_share(spec::NetworkKind kind, const NetworkConstants& constants) {
  switch (kind) {
    case spec::NetworkKind::kInfiniband:
      return constants.infiniband_share;
    case spec::NetworkKind::kEfa:
      return constants.efa_share;
    case spec::NetworkKind::kEthernet:
    case spec::NetworkKind::kNone:
      break;
  }
  return constants.ethernet_share;
}

// Devices that one socket's PCIe reaches.
std::int64_t devices_per_socket(const spec::ClusterSpec& cluster,
                                const NetworkConstants& constants) {
  const std::int64_t devices = cluster.devices_per_node;
  const std::int64_t sockets =
      cluster.numa_nodes.value_or(devices > constants.cards_per_socket ? 2 : 1);
  return std::max<std::int64_t>(1, (devices + sockets - 1) / std::max<std::int64_t>(1, sockets));
}

base::Result<base::BytesPerSecond> pcie_of(const spec::LinkSpec& link) {
  if (link.pcie) return *link.pcie;
  if (link.kind == spec::LinkKind::kPcie && link.bandwidth) return *link.bandwidth;
  return base::fail(base::usage_error(
      "cluster.link.pcie", "is not set, but devices communicate over PCIe",
      "set it, per device and direction, e.g. --set 'cluster.link.pcie=\"64 GB/s\"'"));
}

}  // namespace

std::string_view to_text(Algorithm algorithm) {
  constexpr std::array<std::string_view, 6> kAlgorithmNames = {"none", "ring",      "tree",
                                                               "nvls", "nvls-tree", "pairs"};
  return kAlgorithmNames[static_cast<std::size_t>(algorithm)];
}

std::string_view to_text(Protocol protocol) {
  constexpr std::array<std::string_view, kProtocols> kProtocolNames = {"ll", "ll128", "simple"};
  return kProtocolNames[static_cast<std::size_t>(protocol)];
}

std::string_view to_text(TierKind kind) {
  constexpr std::array<std::string_view, 4> kTierNames = {"nvlink", "pcie", "sockets", "network"};
  return kTierNames[static_cast<std::size_t>(kind)];
}

base::Result<Network> Network::of(const spec::ClusterSpec& cluster,
                                  const NetworkConstants& constants) {
  using spec::LinkKind;
  const spec::LinkSpec& link = cluster.link;
  Network n;
  n.constants_ = constants;
  n.devices_per_node_ = std::max<std::int64_t>(1, cluster.devices_per_node);
  // Switches that connect several nodes make them one, as far as collectives can tell.
  double joined = 1;
  if (link.kind == LinkKind::kNvswitch && link.group && *link.group > n.devices_per_node_) {
    joined = static_cast<double>(*link.group) / static_cast<double>(n.devices_per_node_);
    n.devices_per_node_ = *link.group;
  }
  n.ports_ = std::llround(joined * static_cast<double>(cluster.network.ports.value_or(0)));
  n.generation_ = generation_of(cluster.device);
  n.mesh_ = link.kind == LinkKind::kNvlinkMesh;
  const auto generation = static_cast<std::size_t>(n.generation_);

  std::int64_t linked = 1;  // devices that NVLink connects
  if (n.devices_per_node_ > 1 && link.kind != LinkKind::kPcie) {
    if (!link.bandwidth) {
      return base::fail(base::usage_error("cluster.link.bandwidth",
                                          "is not set, but devices have links",
                                          "set it, per device and direction"));
    }
    const bool groups = link.kind == LinkKind::kNvlinkGroups;
    linked = groups ? link.group.value_or(1) : n.devices_per_node_;
    const double share =
        groups ? constants.nvlink_bridge_share : constants.nvlink_share[generation];
    n.add({TierKind::kNvlink, linked, *link.bandwidth, share * *link.bandwidth, constants.nvlink});
    if (link.kind == LinkKind::kNvswitch) n.nvls_share_ = constants.nvls_share[generation];
  }
  if (linked < n.devices_per_node_) {
    ASSAY_TRY(const base::BytesPerSecond pcie, pcie_of(link));
    const std::int64_t socket = devices_per_socket(cluster, constants);
    const base::BytesPerSecond reached = constants.pcie_share * pcie;
    if (socket > linked) n.add({TierKind::kPcie, socket, pcie, reached, constants.pcie});
    if (socket < n.devices_per_node_) {
      const base::BytesPerSecond across(constants.between_sockets * 1e9);
      n.add({TierKind::kSockets, n.devices_per_node_, pcie, std::min(across, reached),
             constants.pcie});
    }
  }
  if (cluster.network.kind != spec::NetworkKind::kNone) {
    if (!cluster.network.bandwidth) {
      return base::fail(base::usage_error("cluster.network.bandwidth",
                                          "is not set, but nodes have a network",
                                          "set it, per node and direction"));
    }
    const base::BytesPerSecond nominal = joined * *cluster.network.bandwidth;
    const std::int64_t all = std::max(
        n.devices_per_node_, cluster.devices_per_node * std::max(cluster.nodes, cluster.max_nodes));
    n.add({TierKind::kNetwork, all, nominal,
           network_share(cluster.network.kind, constants) * nominal, constants.network});
    n.ll128_ = cluster.network.kind != spec::NetworkKind::kEthernet;
  }
  return n;
}

RankGroup Network::group(std::int64_t ranks, std::int64_t stride) const {
  const std::int64_t apart = std::max<std::int64_t>(1, stride);
  const std::int64_t all = std::max<std::int64_t>(1, ranks);
  return {.ranks = all,
          .per_node = std::clamp<std::int64_t>(devices_per_node_ / apart, 1, all),
          .stride = apart};
}

// The least over what NCCL can choose from.
CollectiveTime Network::time(const step::Collective& collective, const RankGroup& group) const {
  return time(collective.kind, static_cast<double>(collective.bytes()), group);
}

CollectiveTime Network::time(step::CollectiveKind kind, double bytes, const RankGroup& group,
                             const LinkShares& shares) const {
  if (group.ranks <= 1 || bytes <= 0) return {};
  const bool has_network = count_ > 0 && tiers_[count_ - 1].kind == TierKind::kNetwork;
  ASSAY_CHECK(has_network || group.nodes() == 1, "a group over nodes without a network");
  const GroupLinks links(*this, group, shares);
  AlgorithmChoice choice(constants_, links, group, generation_, bytes);
  const auto ranks = static_cast<double>(group.ranks);
  const double part = bytes * (ranks - 1) / ranks;
  double sent = part;
  switch (kind) {
    using step::CollectiveKind;
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
    case CollectiveKind::kSend:
    case CollectiveKind::kReceive:
      sent = bytes;
      choice.send();
      break;
  }
  const AlgorithmCandidate& best = choice.best();
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
