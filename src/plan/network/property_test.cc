// What must hold for every cluster, group and size, whatever the constants are.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "plan/network/network.h"
#include "plan/testing/clusters.h"

namespace assay::plan {
namespace {

using spec::LinkKind;
using step::CollectiveKind;
using testing::collective;
using testing::network_of;

constexpr double kSlack = 1 + 1e-9;  // for sums in another order

spec::ClusterSpec any_cluster() {
  const auto kind = *rc::gen::element(LinkKind::kNvswitch, LinkKind::kNvlinkMesh,
                                      LinkKind::kNvlinkGroups, LinkKind::kPcie);
  auto cluster = testing::one_node(*rc::gen::element(2, 4, 8, 16), kind,
                                   *rc::gen::inRange(10, 1000), *rc::gen::arbitrary<bool>());
  // Blackwell's, of all that have fp8.
  if (cluster.device.fp8 && *rc::gen::arbitrary<bool>())
    cluster.device.fp8 = base::FlopsPerSecond(4.5e15);
  cluster.link.group =
      kind == LinkKind::kNvlinkGroups ? std::optional<std::int64_t>(2) : std::nullopt;
  cluster.link.pcie = base::BytesPerSecond(*rc::gen::inRange(8, 128) * 1e9);
  const auto network = *rc::gen::element(spec::NetworkKind::kInfiniband, spec::NetworkKind::kEfa,
                                         spec::NetworkKind::kEthernet);
  return testing::with_network(cluster, 8, *rc::gen::inRange(1, 800), network);
}

CollectiveKind any_kind() {
  return *rc::gen::element(CollectiveKind::kAllReduce, CollectiveKind::kReduceScatter,
                           CollectiveKind::kAllGather, CollectiveKind::kBroadcast,
                           CollectiveKind::kAllToAll, CollectiveKind::kSendReceive);
}

RankGroup any_group(const Network& network) {
  return network.group(*rc::gen::element(2, 3, 4, 8, 16, 64, 1000, 100'000),
                       *rc::gen::element(1, 2, 4, 8, 16));
}

std::int64_t any_bytes() {
  return std::int64_t{*rc::gen::inRange(1, 4096)} << *rc::gen::inRange(0, 22);
}

double seconds_of(const Network& network, CollectiveKind kind, std::int64_t bytes,
                  const RankGroup& group) {
  return network.time(collective(kind, bytes), group).total.count();
}

RC_GTEST_PROP(NetworkProperty, TimeIsLatencyAndTransfer, ()) {
  const Network network = network_of(any_cluster());
  const CollectiveTime t = network.time(collective(any_kind(), any_bytes()), any_group(network));
  RC_ASSERT(t.latency.count() > 0 && t.transfer.count() > 0);
  RC_ASSERT(std::abs(t.total.count() - t.latency.count() - t.transfer.count()) < 1e-12);
  RC_ASSERT(std::isfinite(t.total.count()) && t.algorithm != Algorithm::kNone);
}

RC_GTEST_PROP(NetworkProperty, OneRankOrNothingToSendCostsNothing, ()) {
  const Network network = network_of(any_cluster());
  const CollectiveKind kind = any_kind();
  RC_ASSERT(seconds_of(network, kind, any_bytes(), network.group(1)) == 0);
  RC_ASSERT(seconds_of(network, kind, 0, any_group(network)) == 0);
}

RC_GTEST_PROP(NetworkProperty, MoreBytesAreNeverFaster, ()) {
  const Network network = network_of(any_cluster());
  const CollectiveKind kind = any_kind();
  const RankGroup group = any_group(network);
  const std::int64_t few = any_bytes();
  RC_ASSERT(seconds_of(network, kind, few, group) <=
            seconds_of(network, kind, few + any_bytes(), group) * kSlack);
}

// Two halves take no less than the whole, and no more than twice the latency above it.
RC_GTEST_PROP(NetworkProperty, SplittingNeverWinsAndCostsOnlyLatency, ()) {
  const Network network = network_of(any_cluster());
  const CollectiveKind kind = any_kind();
  const RankGroup group = any_group(network);
  const std::int64_t half = any_bytes();
  const CollectiveTime whole = network.time(collective(kind, 2 * half), group);
  const double halves = 2 * seconds_of(network, kind, half, group);
  RC_ASSERT(whole.total.count() <= halves * kSlack);
  RC_ASSERT(halves <= (whole.total.count() + whole.latency.count()) * kSlack);
}

RC_GTEST_PROP(NetworkProperty, MoreBandwidthNeverSlows, ()) {
  auto cluster = any_cluster();
  const Network before = network_of(cluster);
  const CollectiveKind kind = any_kind();
  const RankGroup group = any_group(before);
  const std::int64_t bytes = any_bytes();
  const double factor = 1 + *rc::gen::inRange(0, 400) / 100.0;
  *cluster.link.bandwidth = factor * *cluster.link.bandwidth;
  *cluster.link.pcie = factor * *cluster.link.pcie;
  *cluster.network.bandwidth = factor * *cluster.network.bandwidth;
  RC_ASSERT(seconds_of(network_of(cluster), kind, bytes, group) <=
            seconds_of(before, kind, bytes, group) * kSlack);
}

// Where switches do not reduce and all ranks have the same links, one rank more is more work.
RC_GTEST_PROP(NetworkProperty, MoreRanksOnTheSameLinksAreNeverFaster, ()) {
  const auto cluster =
      testing::one_node(16, LinkKind::kNvswitch, *rc::gen::inRange(10, 1000), false);
  const Network network = network_of(cluster);
  const CollectiveKind kind = any_kind();
  const std::int64_t bytes = any_bytes();
  const std::int64_t ranks = *rc::gen::inRange(2, 16);
  RC_ASSERT(seconds_of(network, kind, bytes, network.group(ranks)) <=
            seconds_of(network, kind, bytes, network.group(ranks + 1)) * kSlack);
}

// With whole nodes, more of them have more to do; each has the same links. Not so for an all-to-all
// that its nodes' inside holds up: less of it stays there.
RC_GTEST_PROP(NetworkProperty, MoreNodesAreNeverFaster, ()) {
  const Network network = network_of(any_cluster());
  const CollectiveKind kind = any_kind();
  RC_PRE(kind != CollectiveKind::kAllToAll);
  const std::int64_t bytes = any_bytes();
  const std::int64_t nodes = *rc::gen::element(2, 3, 4, 7, 50, 5000);
  const std::int64_t per_node = network.devices_per_node();
  RC_ASSERT(seconds_of(network, kind, bytes, network.group(nodes * per_node)) <=
            seconds_of(network, kind, bytes, network.group((nodes + 1) * per_node)) * kSlack);
}

}  // namespace
}  // namespace assay::plan
