#include "plan/exchange/activations.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "spec/load.h"

namespace assay::plan {
namespace {

using step::CollectiveKind;

std::vector<ActivationCalls> calls_on_h200s(const std::vector<std::string>& sets,
                                            std::int64_t stage = 0,
                                            spec::Recompute recompute = spec::Recompute::kNone) {
  const auto loaded = spec::load("llama3-70b-h200x32", {.overrides = sets});
  EXPECT_TRUE(loaded.has_value()) << loaded.error().line();
  return activation_calls(std::get<spec::JobSpec>(loaded->spec), stage, recompute);
}

// Each block sums twice forward and twice backward, and so do the two ends of the model once: by
// hand for 80 layers, sequences of 4096 and a width of 8192.
TEST(Activations, TensorRanksSumTwicePerBlockAndDirection) {
  const auto rows =
      calls_on_h200s({"layout.fsdp=8", "layout.tp=4", "batch.micro_batch=1", "batch.accumulate=1"});
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].axis, step::Axis::kTensor);
  EXPECT_EQ(rows[0].calls.kind, CollectiveKind::kAllReduce);
  EXPECT_EQ(rows[0].calls.calls, 4 * 80 + 2);
  EXPECT_EQ(rows[0].calls.bytes, (4 * 80 + 2) * 2 * std::int64_t{4096} * 8192);
}

TEST(Activations, RecomputingABlockSumsAgain) {
  const std::vector<std::string> sets = {"layout.fsdp=8", "layout.tp=4", "batch.micro_batch=1",
                                         "batch.accumulate=1"};
  EXPECT_GT(calls_on_h200s(sets, 0, spec::Recompute::kFull)[0].calls.calls,
            calls_on_h200s(sets)[0].calls.calls);
}

// A stage in the middle hands each micro-batch on and its gradient back; the first only on.
TEST(Activations, StagesSendEachMicroBatch) {
  const std::vector<std::string> sets = {"layout.fsdp=8", "layout.tp=1", "layout.pp=4",
                                         "batch.micro_batch=1", "batch.accumulate=6"};
  const auto middle = calls_on_h200s(sets, 1);
  ASSERT_EQ(middle.size(), 1U);
  EXPECT_EQ(middle[0].axis, step::Axis::kPipeline);
  EXPECT_EQ(middle[0].calls.calls, 12);
  EXPECT_EQ(calls_on_h200s(sets, 0)[0].calls.calls, 6);
}

// By hand, of 80 layers with 8 heads of keys of 128: gathered forward, and again with attention's
// gradients, which are scattered; and once more where attention is computed again, but for the last
// layer.
TEST(Activations, ContextRanksGatherKeysTwicePerBlock) {
  const std::vector<std::string> sets = {"layout.fsdp=8", "layout.tp=1", "layout.cp=4",
                                         "batch.micro_batch=1", "batch.accumulate=3"};
  const std::int64_t bytes = std::int64_t{2} * 4096 * 8 * 128 * 2;
  const auto rows = calls_on_h200s(sets);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].calls.kind, CollectiveKind::kAllGather);
  EXPECT_EQ(rows[0].calls.calls, 3 * 2 * 80);
  EXPECT_EQ(rows[0].calls.bytes, 3 * 2 * 80 * bytes);
  EXPECT_EQ(rows[1].calls.kind, CollectiveKind::kReduceScatter);
  EXPECT_EQ(rows[1].calls.bytes, 3 * 80 * bytes);
  EXPECT_EQ(calls_on_h200s(sets, 0, spec::Recompute::kFull)[0].calls.calls, 3 * (2 * 80 + 79));
}

// Every fourth of 24 layers is a mixture, so two stages have three each, and four have 1, 2, 1 and
// 2: a token goes to its experts and back, in both directions.
TEST(Activations, TokensGoToTheMixturesThatAStageHas) {
  const auto calls = [](std::int64_t pp, std::int64_t stage, spec::Recompute recompute) {
    const std::vector<std::string> sets = {"model.moe_every=4", "layout={ep=2}",
                                           "layout.pp=" + std::to_string(pp), "batch.micro_batch=1",
                                           "batch.accumulate=1"};
    const auto loaded = spec::load("moe-9b-h200x32", {.overrides = sets});
    EXPECT_TRUE(loaded.has_value()) << loaded.error().line();
    const auto& job = std::get<spec::JobSpec>(loaded->spec);
    for (const ActivationCalls& row : activation_calls(job, stage, recompute)) {
      if (row.axis == step::Axis::kExpert) return row.calls.calls;
    }
    return std::int64_t{0};
  };
  EXPECT_EQ(calls(2, 0, spec::Recompute::kNone), 4 * 3);
  EXPECT_EQ(calls(2, 1, spec::Recompute::kNone), 4 * 3);
  EXPECT_EQ(calls(4, 0, spec::Recompute::kNone), 4 * 1);
  EXPECT_EQ(calls(4, 1, spec::Recompute::kNone), 4 * 2);
  // Recomputed but for the model's last layer, of which its own output is not.
  EXPECT_EQ(calls(2, 0, spec::Recompute::kFfn), 5 * 3);
  EXPECT_EQ(calls(2, 1, spec::Recompute::kFfn), 5 * 2 + 4);
}

TEST(Activations, OneRankSendsNothing) {
  const auto loaded = spec::load("llama3-8b-h200");
  const auto& job = std::get<spec::JobSpec>(loaded->spec);
  EXPECT_TRUE(activation_calls(job, 0, spec::Recompute::kNone).empty());
}

}  // namespace
}  // namespace assay::plan
