// Tiers, groups, and which links a collective crosses.
#include "plan/network/network.h"

#include <gtest/gtest.h>

#include "plan/testing/clusters.h"

namespace assay::plan {
namespace {

using spec::LinkKind;
using step::CollectiveKind;
using testing::collective;
using testing::kLargeMessage;
using testing::network_of;
using testing::preset_cluster;
using testing::with_network;

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
    const Network network = network_of(cluster);
    for (const Tier& tier : network.tiers()) {
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
  const RankGroup tensor = network.group(8);
  EXPECT_EQ(tensor.per_node, 8);
  EXPECT_EQ(tensor.nodes(), 1);
  const RankGroup sharded = network.group(32, 4);
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
  EXPECT_NEAR(t.transfer.count(), kLargeMessage * 0.75 / (50e9 * 0.83), 1e-6);
  EXPECT_EQ(t.algorithm, Algorithm::kPairs);
}

// From rank to rank one link is used: to a peer in the mesh, or through one port.
TEST(Network, SendingUsesTheLinkToOneRank) {
  const Network network = network_of(preset_cluster("h200-4-ib"));
  const auto c = collective(CollectiveKind::kSendReceive, kLargeMessage);
  const auto bandwidth = [&](const RankGroup& group) {
    return network.time(c, group).bus_bandwidth.count();
  };
  EXPECT_NEAR(bandwidth(network.group(2)), 370.8e9 / 3, 1e9);
  EXPECT_NEAR(bandwidth(network.group(2, 4)), 50e9 * 0.83, 1e9);
  // Of a pipeline's four stages in each node one leaves it: alone, but still through one port.
  EXPECT_NEAR(bandwidth(network.group(8)), 50e9 * 0.83, 1e9);
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
