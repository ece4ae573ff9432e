// What the model of a step pays for its exchanges is what plan/network asks for them.
#include "plan/model/exchange_time.h"

#include <gtest/gtest.h>

#include "plan/model/step_time.h"
#include "plan/testing/work.h"

namespace assay::plan {
namespace {

using step::CollectiveKind;
using testing::collective;
using testing::llama_8b_on_h100;
using testing::one_node;
using testing::with_network;

// As if nothing were computed beside an exchange.
Constants undisturbed() {
  Constants constants = shipped_constants();
  constants.coll_eff = 1;
  constants.net_eff = 1;
  return constants;
}

Constants unskewed() {
  Constants constants = undisturbed();
  constants.tp_sync_us = 0;
  constants.host_us = 0;
  constants.gap_us = 0;
  return constants;
}

Work tensor_parallel(double ranks, Framework framework = Framework::kLlmc) {
  Work work = llama_8b_on_h100();
  work.software = software_of(framework, work.card);
  work.degrees = {.tp = ranks, .ranks = ranks};
  work.batch = {.sequence = 4096, .micro_batch = 1, .micros = 1};
  return work;
}

base::Seconds time_alone(const Work& work, CollectiveKind kind, std::int64_t bytes,
                         std::int64_t ranks) {
  const Network& network = work.links.network;
  return network.time(collective(kind, bytes), network.group(ranks)).total;
}

constexpr std::int64_t kActivationBytes = std::int64_t{2} * 4096 * 4096;

TEST(ExchangeTime, WithTheLinksToItselfItIsTheNetworksPrice) {
  const Work work = llama_8b_on_h100();
  for (const auto kind : {CollectiveKind::kAllReduce, CollectiveKind::kAllGather,
                          CollectiveKind::kAllToAll, CollectiveKind::kSendReceive}) {
    for (const std::int64_t ranks : {1, 2, 8, 64}) {
      EXPECT_EQ(
          exchange_seconds(kind, 1e6, {static_cast<double>(ranks), 1}, work.links, undisturbed()),
          time_alone(work, kind, 1'000'000, ranks).count());
    }
  }
}

// Two sums per layer and direction, and two around the head.
TEST(ExchangeTime, TensorParallelismPaysForSums) {
  for (const std::int64_t ranks : {2, 4, 8}) {
    const Work work = tensor_parallel(static_cast<double>(ranks));
    const base::Seconds sum = time_alone(work, CollectiveKind::kAllReduce, kActivationBytes, ranks);
    const StepTime t = step_time(work, unskewed());
    EXPECT_NEAR(t.tensor / sum, 4 * work.shape.layers + 2, 1e-9) << ranks << " ranks";
  }
}

// Our trainer exchanges what is to be added, adds it at the speed of memory and gathers the sums.
TEST(ExchangeTime, OurTensorParallelismPaysForItsOwnSums) {
  Work work = tensor_parallel(8, Framework::kAssay);
  const base::Seconds exchanged = time_alone(work, CollectiveKind::kAllToAll, kActivationBytes, 8) +
                                  time_alone(work, CollectiveKind::kAllGather, kActivationBytes, 8);
  const double added =
      kActivationBytes * (1 + 1.0 / 8) / (work.card.memory_rate.count() * unskewed().mem_eff);
  const double sums = 4 * work.shape.layers + 2;
  const double expected = sums * (exchanged.count() + added);
  EXPECT_NEAR(step_time(work, unskewed()).tensor.count() / expected, 1, 1e-9);
  work.degrees.sequence_parallel = true;  // only when is other
  EXPECT_NEAR(step_time(work, unskewed()).tensor.count() / expected, 1, 1e-9);
}

// Sequence parallelism scatters and gathers instead, which switches do not do for it.
TEST(ExchangeTime, SequenceParallelismPaysForScatteringAndGathering) {
  Work work = tensor_parallel(8);
  work.degrees.sequence_parallel = true;
  const base::Seconds both = time_alone(work, CollectiveKind::kReduceScatter, kActivationBytes, 8) +
                             time_alone(work, CollectiveKind::kAllGather, kActivationBytes, 8);
  EXPECT_NEAR(step_time(work, unskewed()).tensor / both, 4 * work.shape.layers + 2, 1e-9);
  EXPECT_GT(both, time_alone(work, CollectiveKind::kAllReduce, kActivationBytes, 8));
}

TEST(ExchangeTime, ComputationBesideItTakesItsShareOfTheBandwidth) {
  constexpr double kManyBytes = 64e9;  // latency is nothing
  Constants constants = undisturbed();
  const Links links = *links_of(with_network(one_node(8, spec::LinkKind::kNvswitch, 450), 4, 100));
  const auto gather = [&](double ranks) {
    return exchange_seconds(CollectiveKind::kAllGather, kManyBytes, {ranks, 1}, links, constants);
  };
  const double inside = gather(8);
  const double across = gather(32);
  constants.coll_eff = 0.5;
  EXPECT_NEAR(gather(8) / inside, 2, 0.001);
  EXPECT_EQ(gather(32), across) << "the network is slower still";
  constants.net_eff = 0.8;
  EXPECT_NEAR(gather(32) / across, 1 / 0.8, 0.001);
  EXPECT_NEAR(
      exchange_seconds(CollectiveKind::kAllGather, kManyBytes, {8, 1}, links, constants, 0.25) /
          inside,
      8, 0.01);
}

// Two of four devices that are linked directly have a third of a device's wires between them, which
// is less than what computation leaves it.
TEST(ExchangeTime, ComputationTakesItsShareOfADeviceNotOfAWire) {
  Constants constants = undisturbed();
  const Links links = *links_of(one_node(4, spec::LinkKind::kNvlinkMesh, 450));
  const auto gather = [&](double ranks) {
    return exchange_seconds(CollectiveKind::kAllGather, 64e9, {ranks, 1}, links, constants);
  };
  const double pair = gather(2);
  const double all = gather(4);
  constants.coll_eff = 0.5;
  EXPECT_EQ(gather(2), pair);
  EXPECT_NEAR(gather(4) / all, 2, 0.001);
}

// What goes through the host was measured in training and is not lowered once more.
TEST(ExchangeTime, PcieIsPricedAsMeasuredInTraining) {
  Constants constants = undisturbed();
  const Links links = *links_of(one_node(4, spec::LinkKind::kPcie, 64));
  const auto gather = [&] {
    return exchange_seconds(CollectiveKind::kAllGather, 1e9, {4, 1}, links, constants);
  };
  const double before = gather();
  constants.coll_eff = 0.5;
  EXPECT_EQ(gather(), before);
}

}  // namespace
}  // namespace assay::plan
