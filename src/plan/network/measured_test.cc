// What a collective takes, against what was measured on real machines.
#include <gtest/gtest.h>

#include "plan/network/network.h"
#include "plan/testing/clusters.h"

namespace assay::plan {
namespace {

using spec::LinkKind;
using step::CollectiveKind;
using testing::collective;
using testing::kLargeMessage;
using testing::network_of;
using testing::one_node;
using testing::preset_cluster;
using testing::with_network;

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
       0.05},
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

}  // namespace
}  // namespace assay::plan
