// Communication of other software's experts, held to bytes counted by hand.
#include "plan/model/mixture_time.h"

#include <gtest/gtest.h>

#include "plan/model/exchange_time.h"
#include "plan/model/step_time.h"
#include "plan/testing/work.h"

namespace assay::plan {
namespace {

// 64 experts of a narrow model, 8 per token, over 64 GPUs in 8 nodes.
Work over_eight_nodes() {
  Work work = testing::llama_8b_on_h100();
  work.shape.experts = 64;
  work.shape.experts_per_token = 8;
  work.shape.expert_ffn = 1024;
  work.shape.moe_layers = work.shape.layers;
  work.degrees = {.dp = 64, .ep = 64, .ranks = 64};
  work.links = *links_of(testing::with_network(testing::one_node(8, spec::LinkKind::kNvswitch, 450),
                                               /*nodes=*/8, 400));
  work.software = software_of(Framework::kMegatronCore, work.card);
  return work;
}

double all_to_all(const Work& work) {
  const Constants constants = shipped_constants();
  return mixture_time(work, rank_share(work, constants), constants).all_to_all;
}

// Dispatch and combine of so many copies of every token across the nodes, and so many inside them.
double of_copies(const Work& work, double across, double inside) {
  const double row_bytes = 2 * work.batch.sequence * work.batch.micro_batch * work.shape.dim;
  const double eff = shipped_constants().a2a_eff;
  const auto seconds = [&](double copies, const RankAxis& axis) {
    return exchange_alone_seconds(step::CollectiveKind::kAllToAll, copies * row_bytes, axis,
                                  work.links, eff);
  };
  return 2 * (seconds(across, {8, 8}) + seconds(inside / 8, {8, 1}));
}

TEST(MixtureTime, PlainAllToAllSendsACopyForEachExpert) {
  Work work = over_eight_nodes();
  EXPECT_NEAR(all_to_all(work) / of_copies(work, 8, 8), 1, 1e-9);
}

TEST(MixtureTime, DispatchersSendATokenToANodeOnce) {
  Work work = over_eight_nodes();
  work.software.sends_tokens_once = true;
  const double nodes = 8 * (1 - std::pow(7.0 / 8, 8));
  const double ranks = 64 * (1 - std::pow(63.0 / 64, 8));
  EXPECT_NEAR(all_to_all(work) / of_copies(work, nodes, ranks), 1, 1e-9);
  // DeepSeek-V3's router chooses 4 groups of experts, a node each, before the experts.
  work.shape.expert_groups = 4;
  EXPECT_NEAR(all_to_all(work) / of_copies(work, 4, ranks), 1, 1e-9);
}

TEST(MixtureTime, RanksWithPartsOfExpertsGatherTheirRows) {
  Work work = over_eight_nodes();
  work.degrees = {.dp = 16, .tp = 4, .ep = 16, .sequence_parallel = true, .ranks = 64};
  const double whole = all_to_all(work);
  const Constants constants = shipped_constants();
  const double products =
      mixture_time(work, rank_share(work, constants), constants).products.forward;
  work.degrees.experts_cut = true;
  EXPECT_GT(all_to_all(work), whole);
  // As many flops: a quarter of each expert for four times the rows.
  EXPECT_NEAR(
      mixture_time(work, rank_share(work, constants), constants).products.forward / products, 1,
      0.15);
}

// The host prepares what was measured, 16 experts of a rank; for each further one it starts
// kernels.
TEST(MixtureHost, GrowsByKernelsBeyondWhatWasMeasured) {
  const auto host = [](double experts) {
    Work work = testing::llama_8b_on_h100();
    work.software = software_of(Framework::kMegatronCore, work.card);
    work.batch.sequence = 64;  // the device waits
    work.shape.experts = experts;
    work.shape.experts_per_token = 2;
    work.shape.expert_ffn = 64;
    work.shape.moe_layers = work.shape.layers;
    testing::complete(work.shape);
    return step_seconds(work, shipped_constants()).count() / work.shape.layers;
  };
  EXPECT_GT(host(16) - host(8), 2e-3);
  EXPECT_LT(host(128) - host(16), 10e-3);
}

}  // namespace
}  // namespace assay::plan
