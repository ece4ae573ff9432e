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

TEST(Activations, OneRankSendsNothing) {
  const auto loaded = spec::load("llama3-8b-h200");
  const auto& job = std::get<spec::JobSpec>(loaded->spec);
  EXPECT_TRUE(activation_calls(job, 0, spec::Recompute::kNone).empty());
}

}  // namespace
}  // namespace assay::plan
