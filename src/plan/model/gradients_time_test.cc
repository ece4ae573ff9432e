// The bytes that steps pay for are those that a job's table of collectives counts; of our trainer,
// those of its programs (folded_exchange_test.cc).
#include "plan/model/gradients_time.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "plan/exchange/communication.h"
#include "plan/model/step_time.h"
#include "plan/testing/parameter_traffic.h"
#include "plan/testing/searches.h"
#include "plan/work_of_job.h"

namespace assay::plan {
namespace {

struct PricedCase {
  std::string name;
  std::string preset;
  std::vector<std::string> set;
};

Work priced_work(const PricedCase& given, Framework framework) {
  return work_of(testing::job_of(given.preset, given.set), {.framework = framework}).value();
}

class PricedTraffic : public ::testing::TestWithParam<PricedCase> {};

// Up to what fills tensors up and what norms keep whole.
void expect_same(double priced, std::int64_t counted, const char* kind) {
  EXPECT_NEAR(priced, static_cast<double>(counted), 0.01 * static_cast<double>(counted)) << kind;
}

TEST_P(PricedTraffic, IsWhatTheTableCounts) {
  const spec::JobSpec job = testing::job_of(GetParam().preset, GetParam().set);
  // PyTorch reduces in fp32, NeMo's recipes in bf16.
  for (const auto& [framework, type] :
       {std::pair(Framework::kTorch, step::Dtype::kF32),
        std::pair(Framework::kMegatronBridge, step::Dtype::kBf16)}) {
    const Volume counted =
        communication_of(job, {.gradients = type, .always_shards = framework == Framework::kTorch})
            .value()
            .bytes();
    const testing::ParameterTraffic priced =
        testing::parameter_traffic(priced_work(GetParam(), framework));
    // Megatron's replicas share the optimizer's state, whatever the layout says.
    if (framework == Framework::kMegatronBridge && job.layout.fsdp == 1) continue;
    expect_same(priced.reduce_scatter, counted.reduce_scatter, "reduce-scatter");
    expect_same(priced.all_gather, counted.all_gather, "all-gather");
    expect_same(priced.all_reduce, counted.all_reduce, "all-reduce");
  }
}

std::vector<PricedCase> priced_cases() {
  const std::vector<std::pair<std::string, std::vector<std::string>>> layouts = {
      {"Replicas", {"layout.fsdp=1", "layout.dp=32"}},
      {"Zero1", {"layout.fsdp=32", "layout.zero=1"}},
      {"Zero2", {"layout.fsdp=32", "layout.zero=2"}},
      {"Zero3", {"layout.fsdp=32", "layout.zero=3"}},
      {"Zero1AndReplicas", {"layout.fsdp=8", "layout.dp=4", "layout.zero=1"}},
      {"Zero2AndReplicas", {"layout.fsdp=8", "layout.dp=4", "layout.zero=2"}},
      {"Zero3AndReplicas", {"layout.fsdp=8", "layout.dp=4", "layout.zero=3"}},
  };
  std::vector<PricedCase> cases;
  for (const auto& [name, set] : layouts) {
    for (const std::string preset : {"llama3-13b-h200x32", "llama3-70b-h200x32"}) {
      for (const std::string optimizer : {"adamw", "muon"}) {
        // Stacked Muon is counted in all.
        if (optimizer == "muon" && (name == "Zero1" || name == "Zero2")) continue;
        PricedCase one{name + preset.substr(7, 3) + optimizer, preset, set};
        for (const char* more : {"layout.tp=1", "batch.accumulate=4"}) one.set.emplace_back(more);
        one.set.push_back("train.optimizer=" + optimizer);
        cases.push_back(std::move(one));
      }
    }
  }
  cases.push_back({"Zero2OfTensorRanks",
                   "llama3-13b-h200x32",
                   {"layout.fsdp=8", "layout.tp=4", "layout.zero=2", "batch.accumulate=4"}});
  cases.push_back({"Zero3OfTensorRanks",
                   "llama3-13b-h200x32",
                   {"layout.fsdp=8", "layout.tp=4", "layout.zero=3", "batch.accumulate=4"}});
  for (const std::string zero : {"1", "2", "3"}) {
    cases.push_back({"Zero" + zero + "OfContexts",
                     "llama3-13b-h200x32",
                     {"layout.fsdp=4", "layout.cp=4", "layout.dp=2", "layout.tp=1",
                      "layout.zero=" + zero, "batch.accumulate=4"}});
    for (const std::string optimizer : {"adamw", "muon"}) {
      // 4 of 8 ranks of FSDP hold other experts, and each shard has two replicas.
      cases.push_back(
          {"Zero" + zero + "OfExperts" + optimizer,
           "moe-9b-h200x32",
           {"layout.tp=1", "layout.dp=2", "layout.fsdp=4", "layout.ep=4", "layout.zero=" + zero,
            "batch.accumulate=4", "train.optimizer=" + optimizer}});
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Jobs, PricedTraffic, ::testing::ValuesIn(priced_cases()),
                         [](const auto& tested) { return tested.param.name; });

TEST(PricedMuon, StacksAreWhatTheTableCounts) {
  for (const std::string model : {"nanochat-d12", "nanochat-d20", "nanochat-d26", "gpt2-124m"}) {
    const spec::JobSpec job =
        testing::job_of("nanochat-d26-h100", {"model.extends=" + model, "batch.sequence=1024"});
    const Work work = work_of(job, {.framework = Framework::kNanochat}).value();
    const testing::ParameterTraffic priced = testing::parameter_traffic(work);
    const double counted = static_cast<double>(communication_of(job).value().bytes().total());
    EXPECT_NEAR(priced.reduce_scatter + priced.all_gather + priced.all_reduce, counted,
                1e-9 * counted)
        << model;
  }
}

double gradients_of(const std::vector<std::string>& set, Framework framework = Framework::kTorch) {
  std::vector<std::string> all = {"layout.tp=1", "layout.fsdp=32", "batch.accumulate=16"};
  all.insert(all.end(), set.begin(), set.end());
  const PricedCase one{"", "llama3-13b-h200x32", all};
  return step_time(priced_work(one, framework), shipped_constants()).gradients.count();
}

// ZeRO 2 reduces after every micro-batch, and what its backward pass hides is not paid.
TEST(PricedGradients, OfZero2ArePaidForEveryMicroBatch) {
  const double once = gradients_of({"layout.zero=1"});
  const double often = gradients_of({"layout.zero=2"});
  EXPECT_GT(often, 5 * once);
  EXPECT_LT(often, 16 * once);
  EXPECT_DOUBLE_EQ(gradients_of({"layout.zero=1", "batch.accumulate=1"}),
                   gradients_of({"layout.zero=2", "batch.accumulate=1"}));
}

// Our trainer does so whatever is sharded, and adds up what it gets.
TEST(PricedGradients, OfOurTrainerArePaidForEveryMicroBatch) {
  const auto ours = [](const char* zero, const char* accumulate) {
    return gradients_of({zero, accumulate}, Framework::kAssay);
  };
  EXPECT_DOUBLE_EQ(ours("layout.zero=1", "batch.accumulate=16"),
                   ours("layout.zero=2", "batch.accumulate=16"));
  EXPECT_GT(ours("layout.zero=1", "batch.accumulate=16"),
            5 * ours("layout.zero=1", "batch.accumulate=1"));
}

// Experts whose holders are on different nodes go through a port of the network each: no step takes
// less than their bytes need there.
TEST(PricedShards, OfExpertsTakeNoLessThanTheirBytesOnTheNetwork) {
  const PricedCase one{
      "",
      "moe-9b-h200x32",
      {"layout.tp=1", "layout.dp=1", "layout.fsdp=8", "layout.ep=4", "batch.accumulate=4",
       "batch.sequence=128", "cluster.network.bandwidth=\"8 GB/s\""}};
  for (const Framework framework : {Framework::kTorch, Framework::kMegatronBridge}) {
    const Work work = priced_work(one, framework);
    // Neighbours hold the other experts, so the 8 with the same ones are on 8 nodes of 4 cards.
    const RankShare rank = rank_share(work, shipped_constants());
    ASSERT_EQ(expert_holders(work.degrees, rank, work.degrees.fsdp), 8);
    ASSERT_EQ(expert_holders_apart(work.degrees, rank), 4);
    const double experts = rank.expert_parameters * work.shape.layers / work.degrees.ep;
    const double bytes = experts * (2 + 2 + work.software.gradient_bytes) * work.batch.micros;
    constexpr double kPort = 8e9 / 4;
    EXPECT_GT(step_time(work, shipped_constants()).total.count(), bytes * 7 / 8 / kPort);
  }
}

// Ranks that hold the same experts share sequences, or are as near as their number allows: on one
// node they need no network, whether there is one or not.
TEST(PricedGradients, OfExpertsAndContextsOnANodeNeedNoNetwork) {
  for (const char* layout : {"layout={ep=2,cp=4}", "layout={ep=4,cp=2}", "layout={ep=2,cp=2,tp=2}",
                             "layout={ep=2,cp=2,dp=2}", "layout={ep=2,cp=2,fsdp=2}"}) {
    for (const Framework framework : {Framework::kAssay, Framework::kTorch,
                                      Framework::kMegatronCore, Framework::kMegatronBridge}) {
      const auto step = [&](const std::string& cluster, const std::string& set) {
        const PricedCase one{
            "", "moe-9b-h200", {"cluster.extends=" + cluster, layout, "batch.sequence=4096", set}};
        return step_time(priced_work(one, framework), shipped_constants()).total.count();
      };
      const double without = step("h100-sxm-8", "batch.micro_batch=1");
      EXPECT_GT(without, 0);
      const double slow = step("b200-sxm-8", "cluster.network.bandwidth=\"1 GB/s\"");
      const double fast = step("b200-sxm-8", "cluster.network.bandwidth=\"400 GB/s\"");
      EXPECT_NEAR(slow / fast, 1, 1e-9) << layout << ' ' << to_text(framework);
    }
  }
}

// Muon needs whole matrices, wherever their parts are.
TEST(PricedGradients, MuonOfShardsGathersItsMatrices) {
  EXPECT_EQ(gradients_of({"layout.zero=3"}), 0);
  EXPECT_GT(gradients_of({"layout.zero=3", "train.optimizer=muon"}), 0);
}

}  // namespace
}  // namespace assay::plan
