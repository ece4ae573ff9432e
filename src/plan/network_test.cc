// What a collective takes, against what was measured on real machines, and what a group is.
#include "plan/network.h"

#include <gtest/gtest.h>

#include "plan/testing/clusters.h"

namespace assay::plan {
namespace {

using spec::LinkKind;
using step::CollectiveKind;
using testing::collective;
using testing::network_of;
using testing::one_node;
using testing::preset_cluster;
using testing::with_network;

constexpr std::int64_t kLargeMessage = std::int64_t{8} << 30;

double bus_gb(const spec::ClusterSpec& cluster, std::int64_t ranks, CollectiveKind kind) {
  const Network network = network_of(cluster);
  return network.time(collective(kind, kLargeMessage), network.group(ranks)).bus_bandwidth.count() /
         1e9;
}

struct Measured {
  const char* name;
  spec::ClusterSpec cluster;
  std::int64_t ranks;
  CollectiveKind kind;
  double bus_gb;
  double tolerance;  // of bus_gb
};

spec::ClusterSpec with_pcie(spec::ClusterSpec cluster, std::int64_t group, double pcie_gb) {
  cluster.link.group = group;
  cluster.link.pcie = base::BytesPerSecond(pcie_gb * 1e9);
  return cluster;
}

std::vector<Measured> measurements() {
  const auto h100 = preset_cluster("h100-sxm-8");
  return {
      {"8 x H100 SXM, ring", h100, 8, CollectiveKind::kAllGather, 367.5, 0.02},
      {"8 x H100 SXM, ring", h100, 8, CollectiveKind::kReduceScatter, 367.5, 0.02},
      {"8 x H100 SXM, NVLS", h100, 8, CollectiveKind::kAllReduce, 480, 0.05},
      {"8 x H200 SXM", h100, 8, CollectiveKind::kAllReduce, 475, 0.05},
      {"4 x 8 H100, 3.2 Tb/s", with_network(h100, 4, 400), 32, CollectiveKind::kAllReduce, 331,
       0.10},
      {"8 x A100 SXM", preset_cluster("p4d-24xlarge"), 8, CollectiveKind::kAllReduce, 229, 0.05},
      {"H100 PCIe pair, bridged", with_pcie(one_node(2, LinkKind::kNvlinkGroups, 300), 2, 64), 2,
       CollectiveKind::kAllReduce, 115, 0.05},
      {"A100 pairs across PCIe 4",
       with_pcie(one_node(4, LinkKind::kNvlinkGroups, 300, false), 2, 32), 4,
       CollectiveKind::kAllReduce, 20, 0.05},
      {"8 x H100 NVL, in training", preset_cluster("h100-nvl-8"), 8, CollectiveKind::kAllReduce, 27,
       0.11},
  };
}

TEST(NetworkMeasured, LargeCollectivesReachWhatWasMeasured) {
  for (const Measured& m : measurements()) {
    const double predicted = bus_gb(m.cluster, m.ranks, m.kind);
    EXPECT_NEAR(predicted, m.bus_gb, m.tolerance * m.bus_gb) << m.name;
    RecordProperty(m.name, fmt::format("{:.1f} GB/s, measured {:.1f}", predicted, m.bus_gb));
  }
}

// Over two nodes a tree sends everything once each way, so nccl-tests reports more than the wire
// has: 57.2 GB/s over 50 on p4d (NVIDIA/nccl#527), 30 of 50 with four nodes. That setup was slow;
// ours may be faster, not slower, and not beyond the wire.
TEST(NetworkMeasured, TwoNodesAppearToExceedTheWire) {
  const auto p4d = preset_cluster("p4d-24xlarge");
  EXPECT_GT(bus_gb(p4d, 16, CollectiveKind::kAllReduce), 57);
  EXPECT_LT(bus_gb(p4d, 16, CollectiveKind::kAllReduce), 50 * 2 * 15 / 16.0);
  EXPECT_GT(bus_gb(p4d, 32, CollectiveKind::kAllReduce), 29.6);
  EXPECT_LT(bus_gb(p4d, 32, CollectiveKind::kAllReduce), 50);
}

TEST(NetworkMeasured, SmallMessagesTakeMicroseconds) {
  const auto h100 = preset_cluster("h100-sxm-8");
  const auto small = [](const spec::ClusterSpec& cluster, std::int64_t ranks) {
    const Network network = network_of(cluster);
    const auto c = collective(CollectiveKind::kAllReduce, 1024);
    return network.time(c, network.group(ranks));
  };
  const CollectiveTime one = small(h100, 8);
  EXPECT_GT(one.total.count(), 8e-6);
  EXPECT_LT(one.total.count(), 25e-6);
  EXPECT_EQ(one.protocol, Protocol::kLl);
  const CollectiveTime many = small(with_network(h100, 64, 400), 512);
  EXPECT_EQ(many.algorithm, Algorithm::kTree);
  EXPECT_GT(many.total.count(), 30e-6);
  EXPECT_LT(many.total.count(), 120e-6);
}

TEST(Network, ProtocolsTakeTurnsAsMessagesGrow) {
  const Network network = network_of(preset_cluster("h100-sxm-8"));
  const auto gather = [&](std::int64_t bytes) {
    return network.time(collective(CollectiveKind::kAllGather, bytes), network.group(8)).protocol;
  };
  EXPECT_EQ(gather(4 << 10), Protocol::kLl);
  EXPECT_EQ(gather(8 << 20), Protocol::kLl128);
  EXPECT_EQ(gather(1 << 30), Protocol::kSimple);
}

TEST(Network, TiersAreWhatTheClusterHas) {
  const auto kinds = [](const spec::ClusterSpec& cluster) {
    std::string text;
    for (const Tier& tier : network_of(cluster).tiers()) {
      text += fmt::format("{}{}:{}", text.empty() ? "" : " ", to_text(tier.kind), tier.devices);
    }
    return text;
  };
  EXPECT_EQ(kinds(preset_cluster("h100-sxm-8")), "nvlink:8");
  EXPECT_EQ(kinds(preset_cluster("h100-nvl-8")), "nvlink:2 pcie:4 sockets:8");
  EXPECT_EQ(kinds(preset_cluster("h100-pcie-8")), "pcie:4 sockets:8");
  EXPECT_EQ(kinds(preset_cluster("h200-1")), "");
  EXPECT_EQ(kinds(preset_cluster("h200-4-ib")), "nvlink:4 network:32");
  auto one_socket = preset_cluster("h100-pcie-8");
  one_socket.numa_nodes = 1;
  EXPECT_EQ(kinds(one_socket), "pcie:8");
}

TEST(Network, OnlySwitchesOfHopperReduce) {
  EXPECT_TRUE(network_of(preset_cluster("h100-sxm-8")).has_nvls());
  EXPECT_FALSE(network_of(preset_cluster("p4d-24xlarge")).has_nvls());
  EXPECT_FALSE(network_of(preset_cluster("h200-4-ib")).has_nvls());
}

TEST(Network, GroupsFillNodesFromTheInside) {
  const Network network = network_of(with_network(preset_cluster("h100-sxm-8"), 16, 400));
  const Group tensor = network.group(8);
  EXPECT_EQ(tensor.per_node, 8);
  EXPECT_EQ(tensor.nodes(), 1);
  const Group sharded = network.group(32, 4);
  EXPECT_EQ(sharded.per_node, 2);
  EXPECT_EQ(sharded.nodes(), 16);
  EXPECT_EQ(network.group(16, 8).per_node, 1);
  EXPECT_EQ(network.group(16, 64).nodes(), 16);
}

// Eight groups of one rank per node have an eighth of the network each.
TEST(Network, GroupsShareTheNetworkOfTheirNode) {
  const Network network = network_of(with_network(preset_cluster("h100-sxm-8"), 16, 400));
  const auto c = collective(CollectiveKind::kAllGather, kLargeMessage);
  const double whole = network.time(c, network.group(128)).transfer.count();
  const double eighth = network.time(c, network.group(16, 8)).transfer.count();
  EXPECT_NEAR(eighth / whole, 8 * (15.0 / 16) / (127.0 / 128), 1e-9);
}

TEST(Network, AMeshGivesAPairOnlyItsOwnLinks) {
  const Network network = network_of(preset_cluster("h200-4-ib"));
  const auto c = collective(CollectiveKind::kAllGather, kLargeMessage);
  const double four = network.time(c, network.group(4)).bus_bandwidth.count();
  const double pair = network.time(c, network.group(2)).bus_bandwidth.count();
  EXPECT_NEAR(four / pair, 3, 0.01);
}

// A pair of an NVL node talks over its bridge; one rank of each pair over PCIe.
TEST(Network, StridesDecideWhichLinksAreCrossed) {
  const Network network = network_of(preset_cluster("h100-nvl-8"));
  const auto c = collective(CollectiveKind::kAllGather, kLargeMessage);
  EXPECT_NEAR(network.time(c, network.group(2)).bus_bandwidth.count(), 115.5e9, 1e9);
  EXPECT_NEAR(network.time(c, network.group(2, 2)).bus_bandwidth.count(), 40e9, 1e9);
  EXPECT_NEAR(network.time(c, network.group(4)).bus_bandwidth.count(), 40e9, 1e9);
  EXPECT_LT(network.time(c, network.group(2, 4)).bus_bandwidth.count(), 27e9);
}

TEST(Network, AnAllToAllOverNodesIsAsSlowAsItsNetwork) {
  const Network network = network_of(with_network(preset_cluster("h100-sxm-8"), 4, 400));
  const auto c = collective(CollectiveKind::kAllToAll, kLargeMessage);
  const CollectiveTime t = network.time(c, network.group(32));
  // 24 of 32 pieces leave the node, through an eighth of its network.
  EXPECT_NEAR(t.transfer.count(), kLargeMessage * 0.75 / (50e9 * 0.87), 1e-6);
  EXPECT_EQ(t.algorithm, Algorithm::kPairs);
}

TEST(Network, AnUnknownBandwidthIsAnError) {
  spec::ClusterSpec cluster;
  cluster.devices_per_node = 4;
  cluster.link.kind = LinkKind::kPcie;
  EXPECT_NE(Network::of(cluster).error().line().find("cluster.link.pcie"), std::string::npos);
  cluster.link.kind = LinkKind::kNvswitch;
  EXPECT_FALSE(Network::of(cluster).has_value());
  cluster.devices_per_node = 1;
  cluster.link.kind = LinkKind::kNone;
  EXPECT_TRUE(Network::of(cluster).has_value());
  cluster.network.kind = spec::NetworkKind::kEfa;
  EXPECT_FALSE(Network::of(cluster).has_value());
}

}  // namespace
}  // namespace assay::plan
