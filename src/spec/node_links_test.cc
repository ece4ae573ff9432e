// Link graphs drawn by hand, and what a cluster makes of them.
#include "spec/node_links.h"

#include <gtest/gtest.h>

namespace assay::spec {
namespace {

struct Edge {
  int a;
  int b;
  int nvlinks;
  bool nvswitch = false;
};

NodeLinks links_of(int gpus, const std::vector<Edge>& edges) {
  machine::Machine machine;
  std::vector<int> all;
  for (int i = 0; i < gpus; ++i) all.push_back(i);
  for (const Edge& edge : edges) {
    machine.gpu_links.push_back(
        {.a = edge.a, .b = edge.b, .nvlinks = edge.nvlinks, .nvswitch = edge.nvswitch});
  }
  return node_links(machine, all);
}

TEST(NodeLinks, SwitchesServeEveryPair) {
  const NodeLinks links = links_of(3, {{0, 1, 18, true}, {0, 2, 18, true}, {1, 2, 18, true}});
  EXPECT_EQ(links.kind, LinkKind::kNvswitch);
  EXPECT_EQ(links.nvlinks, 18);
}

TEST(NodeLinks, DirectLinksToAllAddUp) {
  // Four A100 of a DGX Station: four links to each of the three others.
  const NodeLinks links =
      links_of(4, {{0, 1, 4}, {0, 2, 4}, {0, 3, 4}, {1, 2, 4}, {1, 3, 4}, {2, 3, 4}});
  EXPECT_EQ(links.kind, LinkKind::kNvlinkMesh);
  EXPECT_EQ(links.nvlinks, 12);
  EXPECT_EQ(links_of(2, {{0, 1, 12}}).kind, LinkKind::kNvlinkMesh) << "a bridge";
  EXPECT_EQ(links_of(3, {{0, 1, 2}, {0, 2, 2}, {1, 2, 1}}).nvlinks, 3) << "the least connected";
}

TEST(NodeLinks, EqualCompleteGroupsAreGroups) {
  const NodeLinks pairs = links_of(4, {{0, 3, 12}, {1, 2, 12}, {0, 1, 0}});
  EXPECT_EQ(pairs.kind, LinkKind::kNvlinkGroups);
  EXPECT_EQ(pairs.group, 2);
  EXPECT_EQ(pairs.nvlinks, 12);
}

TEST(NodeLinks, AnythingElseIsPcie) {
  EXPECT_EQ(links_of(4, {}).kind, LinkKind::kPcie);
  EXPECT_EQ(links_of(3, {{0, 1, 12}}).kind, LinkKind::kPcie) << "one is left over";
  EXPECT_EQ(links_of(3, {{0, 1, 12}, {1, 2, 12}}).kind, LinkKind::kPcie) << "a chain";
  EXPECT_EQ(links_of(4, {{0, 1, 2}, {1, 2, 2}, {2, 3, 2}, {0, 3, 2}}).kind, LinkKind::kPcie)
      << "a ring";
  EXPECT_EQ(links_of(5, {{0, 1, 2}, {2, 3, 2}, {2, 4, 2}, {3, 4, 2}}).kind, LinkKind::kPcie)
      << "a pair and a triangle";
  EXPECT_EQ(links_of(2, {{0, 7, 12}, {-1, 1, 12}, {1, 1, 12}, {0, 1, -4}}).kind, LinkKind::kPcie)
      << "links of nowhere";
}

}  // namespace
}  // namespace assay::spec
