#include "plan/calibrate/row_cluster.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "plan/model/cluster_links.h"
#include "plan/model/exchange_time.h"

namespace assay::plan {
namespace {

Links links_of_row(const RowFields& row) {
  return links_of(row_cluster(row, *find_card(row.gpu_type))).value();
}

// Innermost first.
std::vector<TierKind> tiers_of_row(const std::string& card, double per_node,
                                   const std::string& lower_notes = "") {
  std::vector<TierKind> kinds;
  const Links links =
      links_of_row({.gpu_type = card, .lower_notes = lower_notes, .gpus_per_node = per_node});
  for (const Tier& tier : links.network.tiers()) kinds.push_back(tier.kind);
  return kinds;
}

TEST(RowCluster, LinksFollowFromTheCard) {
  using enum TierKind;
  using Kinds = std::vector<TierKind>;
  EXPECT_EQ(tiers_of_row("H100-SXM5-80GB", 8), (Kinds{kNvlink, kNetwork}));
  EXPECT_EQ(tiers_of_row("H100-SXM5-80GB", 1), (Kinds{kNetwork}));
  EXPECT_EQ(tiers_of_row("H100-PCIe-80GB", 4), (Kinds{kPcie, kNetwork}));
  EXPECT_EQ(tiers_of_row("H100-PCIe-80GB", 8), (Kinds{kPcie, kSockets, kNetwork}));
  EXPECT_EQ(tiers_of_row("H100-PCIe-80GB", 8, "one numa node"), (Kinds{kPcie, kNetwork}));
  EXPECT_EQ(tiers_of_row("H100-NVL-94GB", 8), (Kinds{kNvlink, kPcie, kSockets, kNetwork}));
  EXPECT_EQ(tiers_of_row("h200 nvl", 8), (Kinds{kNvlink, kPcie, kSockets, kNetwork}));
  EXPECT_EQ(tiers_of_row("H200-NVL4", 4), (Kinds{kNvlink, kNetwork}));
  EXPECT_EQ(tiers_of_row("GB200-NVL72", 4), (Kinds{kNvlink, kNetwork}));
  // NVIDIA's name for the board of eight B300, which have two dies each.
  EXPECT_EQ(tiers_of_row("B300-NVL16", 8), (Kinds{kNvlink, kNetwork}));
  EXPECT_EQ(tiers_of_row("B200-NVL8", 8), (Kinds{kNvlink, kNetwork}));
}

// Boards of eight have switches, boards of four direct links: two cards have a third of those.
TEST(RowCluster, BoardsOfFourAreLinkedDirectly) {
  const auto pair_seconds = [](double per_node) {
    const Links links = links_of_row({.gpu_type = "H100-SXM5-80GB", .gpus_per_node = per_node});
    const Network& network = links.network;
    return network.time(step::CollectiveKind::kAllGather, 64e9, network.group(2)).total.count();
  };
  EXPECT_NEAR(pair_seconds(4) / pair_seconds(8), 3, 0.001);
}

// Whatever kind of link a bandwidth is taken for.
TEST(RowCluster, MoreBandwidthIsNeverSlower) {
  for (const std::string card : {"H100-SXM5-80GB", "H100-PCIe-80GB", "H100-NVL-94GB"}) {
    for (const double per_node : {2.0, 4.0, 8.0}) {
      for (const double ranks : {2.0, per_node}) {
        double before = HUGE_VAL;
        for (double gb = 20; gb < 1000; gb += 0.5) {
          const Links links =
              links_of_row({.gpu_type = card, .gpus_per_node = per_node, .intra_bw = gb});
          const double now = exchange_seconds(step::CollectiveKind::kAllGather, 64e9,
                                              {.ranks = ranks}, links, shipped_constants());
          ASSERT_LE(now, before) << card << ", " << ranks << " of " << per_node << ", " << gb;
          before = now;
        }
      }
    }
  }
}

TEST(RowCluster, ARowsOwnValuesCount) {
  const spec::ClusterSpec said = row_cluster({.gpu_type = "H100-SXM5-80GB",
                                              .lower_notes = "128 vcpu over two numa nodes",
                                              .gpus_per_node = 8,
                                              .intra_bw = 200,
                                              .inter_bw = 12.5},
                                             *find_card("H100-SXM5-80GB"));
  EXPECT_EQ(said.link.bandwidth->count(), 200e9);
  EXPECT_EQ(said.network.bandwidth->count(), 100e9);
  EXPECT_EQ(said.cpus, 128);
  EXPECT_TRUE(said.unpinned);
  EXPECT_EQ(said.numa_nodes, 2);
}

// GB200 and GB300 are one domain of 72, over nodes of 4; others end with their node.
TEST(RowCluster, DomainsOfNvlinkReachBeyondNodes) {
  const auto seconds = [](const std::string& card, double ranks) {
    const Links links = links_of_row({.gpu_type = card, .gpus_per_node = 4});
    return links.network
        .time(step::CollectiveKind::kAllGather, 64e9,
              links.network.group(static_cast<std::int64_t>(ranks)))
        .total.count();
  };
  for (const std::string card : {"GB200", "GB300", "GB300-NVL72"})
    EXPECT_LT(seconds(card, 64), 1.1 * seconds(card, 4) * (63.0 / 64) / (3.0 / 4)) << card;
  for (const std::string card : {"GB200-NVL8", "gb200-nvl8"})
    EXPECT_GT(seconds(card, 16), 1.5 * seconds(card, 8)) << card;
  EXPECT_GT(seconds("B300", 8), 1.5 * seconds("B300", 4));
}

}  // namespace
}  // namespace assay::plan
