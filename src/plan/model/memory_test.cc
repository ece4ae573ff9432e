#include "plan/model/memory.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdint>
#include <limits>

#include "plan/testing/searches.h"
#include "plan/testing/work.h"
#include "plan/work_of_job.h"

namespace assay::plan {
namespace {

using base::Bytes;
using testing::any_work;
using testing::llama_8b_on_h100;

constexpr Bytes kExbibyte(std::int64_t{1} << 60);

Work with_assay(RecomputeKind kind) {
  Work work = llama_8b_on_h100();
  work.software = software_of(Framework::kAssay, work.card);
  work.degrees = {};
  work.batch.micros = 1;
  work.recompute = kind;
  return work;
}

MemoryNeed need_of(const Work& work) {
  return memory_need(work, shipped_memory_constants());
}

// As the trainer's own plan has them for this model: docs/train.md.
TEST(Memory, AssayKeepsWhatItsPlanKeeps) {
  const std::pair<RecomputeKind, std::int64_t> cases[] = {{RecomputeKind::kNone, 139392},
                                                          {RecomputeKind::kCheap, 94336},
                                                          {RecomputeKind::kFfn, 36992},
                                                          {RecomputeKind::kFull, 8192}};
  for (const auto& [kind, bytes] : cases) {
    Work work = with_assay(kind);
    const Bytes whole = need_of(work).activations;
    work.shape.layers -= 1;
    const auto tokens = static_cast<std::int64_t>(work.batch.sequence);
    EXPECT_EQ(whole - need_of(work).activations, Bytes(bytes) * tokens);
  }
}

TEST(Memory, BytesPerParameter) {
  const auto states = [](const Work& work) {
    const MemoryNeed need = need_of(work);
    const Bytes held = need.parameters + need.gradients + need.optimizer;
    return static_cast<double>(held.count()) / work.shape.parameters;
  };
  Work work = with_assay(RecomputeKind::kNone);
  EXPECT_DOUBLE_EQ(states(work), 10);
  work.degrees.dp = 8;
  EXPECT_DOUBLE_EQ(states(work), 2 + 8.0 / 8);  // sums of gradients are kept with the state
  work.software.shards_optimizer = false;
  EXPECT_DOUBLE_EQ(states(work), 10);

  work = llama_8b_on_h100();
  EXPECT_DOUBLE_EQ(states(work), 16.0 / 8);
  work.software.pure_bf16 = true;
  EXPECT_DOUBLE_EQ(states(work), 8.0 / 8);
  work.lora = true;
  EXPECT_DOUBLE_EQ(states(work), 2.0 / 8);
}

// To the nearest, and what is no size at all is too large for every card.
// nanochat's log of January 2026: 34 GB for a d12 in bf16 with 32 sequences of 2,048 (before it had
// embeddings of values).
TEST(Memory, NanochatsD12) {
  Work work = llama_8b_on_h100();
  work.software = software_of(Framework::kNanochat, work.card);
  work.shape = {.layers = 12, .dim = 768, .heads = 6, .kv_heads = 6, .head_dim = 128, .ffn = 3072};
  work.shape.mlp_matrices = 2;
  work.shape.vocab = 32768;
  work.shape.qkv = 3 * 768;
  work.shape.attention_out = 768;
  work.shape.body_parameters = 12 * 12 * 768 * 768;
  work.shape.parameters = work.shape.body_parameters + 2 * 32768 * 768;
  work.degrees = {.dp = 8, .ranks = 8};
  work.batch = {.sequence = 2048, .micro_batch = 32, .micros = 1};
  const double gigabytes = static_cast<double>(need_of(work).total().count()) / 1e9;
  EXPECT_NEAR(gigabytes, 34, 0.15 * 34);
}

// Transformer Engine has each weight in fp8 as well, twice; software that stores fp8 alone does
// not.
TEST(Memory, WeightsInFp8HaveCopies) {
  Work work = llama_8b_on_h100();
  work.software = software_of(Framework::kMegatronCore, work.card);
  work.degrees = {.dp = 8, .ranks = 8};
  const Bytes in_bf16 = need_of(work).parameters;
  work.fp8 = true;
  EXPECT_EQ(need_of(work).parameters, in_bf16 * 2);
  work.software.quantised_copies = false;
  EXPECT_EQ(need_of(work).parameters, in_bf16);
}

TEST(Memory, LayersWithAStateKeepMore) {
  Work work = llama_8b_on_h100();
  work.software = software_of(Framework::kAutomodel, work.card);
  const Bytes attending = need_of(work).activations;
  work.shape.state_share = 0.5;
  const double kept = 2 * work.batch.sequence * work.batch.micro_batch * work.shape.layers * 0.5 *
                      work.shape.attention_out;
  EXPECT_NEAR((need_of(work).activations - attending) / Bytes(1), kept, 1e-6 * kept);
}

TEST(Memory, WholeBytes) {
  EXPECT_EQ(whole_bytes(0), Bytes(0));
  EXPECT_EQ(whole_bytes(2.4), Bytes(2));
  EXPECT_EQ(whole_bytes(2.6), Bytes(3));
  EXPECT_EQ(whole_bytes(141e9), Bytes(141'000'000'000));
  EXPECT_EQ(whole_bytes(1e30), kExbibyte);
  EXPECT_EQ(whole_bytes(std::numeric_limits<double>::infinity()), kExbibyte);
  EXPECT_EQ(whole_bytes(std::numeric_limits<double>::quiet_NaN()), kExbibyte);
  const MemoryNeed most{kExbibyte, kExbibyte, kExbibyte, kExbibyte, kExbibyte, kExbibyte};
  EXPECT_DOUBLE_EQ(most.total() / kExbibyte, 6);
}

// FSDP has units unsharded, not the model; what keeps weights from the forward to the backward pass
// has all of them.
TEST(Memory, UnitsAreGathered) {
  const auto as_double = [](Bytes bytes) { return static_cast<double>(bytes.count()); };
  Work work = llama_8b_on_h100();
  work.software = software_of(Framework::kAutomodel, work.card);
  const double layer = 2 * work.shape.body_parameters / work.shape.layers;
  const double ends = 2 * 2 * work.shape.vocab * work.shape.dim;
  EXPECT_NEAR(as_double(need_of(work).gathered), 3 * layer + 2 * ends, 1);
  work.degrees.fsdp = 512;
  EXPECT_NEAR(as_double(need_of(work).gathered), 3 * layer + 2 * ends, 1);
  work.degrees.units = 2;
  EXPECT_NEAR(as_double(need_of(work).gathered), 1.5 * layer + 2 * ends, 1);
  work.software.gathers_once = true;
  EXPECT_NEAR(as_double(need_of(work).gathered), 2 * work.shape.parameters, 1);
}

// The first stage keeps a micro-batch for each stage, the last one only one, and the logits.
TEST(Memory, TheLargestStageOfAPipeline) {
  Work work = with_assay(RecomputeKind::kNone);
  work.degrees = {.pp = 4, .ranks = 4};
  work.batch.micros = 16;
  const MemoryNeed many = need_of(work);
  EXPECT_EQ(many.stage, 0);
  work.degrees.gpipe = true;
  EXPECT_GT(need_of(work).activations / many.activations, 3.9);
  work.degrees.gpipe = false;
  // The last one keeps as many, whose gradients of weights wait.
  work.degrees.zero_bubble = true;
  EXPECT_EQ(need_of(work).stage, 3);
  EXPECT_GT(need_of(work).activations, many.activations);
  EXPECT_LT(need_of(work).activations / many.activations, 1.2);
  work.degrees.zero_bubble = false;
  work.batch.micros = 1;  // that no stage waits with
  EXPECT_EQ(need_of(work).stage, 3);
}

// Layers are whole: 33 and 48 in 16 stages are three in the fullest.
TEST(Memory, UnevenStagesHaveWholeLayers) {
  const auto need = [](Framework framework, int layers) {
    const spec::JobSpec job = testing::job_of(
        "llama3-70b-h200x32", {fmt::format("model.layers={}", layers), "layout={fsdp=1,tp=1,pp=16}",
                               "cluster.nodes=4", "batch.accumulate=32", "train.recompute=full"});
    const MemoryNeed found =
        memory_need(work_of(job, {.framework = framework}).value(), shipped_memory_constants());
    return found.total() / Bytes(1);
  };
  for (const Framework framework : {Framework::kMegatronCore, Framework::kTorchCompiled}) {
    EXPECT_GT(need(framework, 33), 0.9 * need(framework, 48)) << to_text(framework);
    EXPECT_LT(need(framework, 33), 1.0001 * need(framework, 48)) << to_text(framework);
    EXPECT_LT(need(framework, 32), 0.9 * need(framework, 48)) << to_text(framework);
  }
}

RC_GTEST_PROP(MemoryProperty, PartsAreFiniteAndNoneIsNegative, ()) {
  const MemoryNeed need = need_of(any_work());
  const Bytes none(0);
  RC_ASSERT(need.parameters > none && need.gradients >= none && need.optimizer >= none);
  RC_ASSERT(need.activations > none && need.gathered >= none && need.workspace > none);
  RC_ASSERT(need.total() < kExbibyte);  // which is what parts count as that are not finite
}

RC_GTEST_PROP(MemoryProperty, MoreShardsNeverHoldMoreState, ()) {
  Work work = any_work();
  RC_PRE(work.degrees.fsdp > 1);
  const MemoryNeed few = need_of(work);
  work.degrees.fsdp *= 2;
  const MemoryNeed many = need_of(work);
  if (many.stage != few.stage) {  // another one is the largest now
    RC_ASSERT(many.total() < few.total());
    return;
  }
  RC_ASSERT(many.parameters + many.gradients + many.optimizer <
            few.parameters + few.gradients + few.optimizer);
  RC_ASSERT(many.activations == few.activations);
}

RC_GTEST_PROP(MemoryProperty, LargerMicroBatchesHoldMore, ()) {
  Work work = any_work();
  const Bytes before = need_of(work).total();
  work.batch.micro_batch += 1;
  RC_ASSERT(need_of(work).total() > before);
}

RC_GTEST_PROP(MemoryProperty, FullRecomputationKeepsTheLeast, ()) {
  Work work = any_work();
  RC_PRE(work.degrees.pp <= work.shape.layers);  // every stage has a layer to recompute
  work.recompute = RecomputeKind::kFull;
  // All of it: which stage of a pipeline is the largest may change.
  const Bytes full = need_of(work).total();
  work.recompute = static_cast<RecomputeKind>(*rc::gen::inRange(0, 4));
  RC_ASSERT(need_of(work).total() >= full);
}

// With the same active parameters there are more of them in all.
RC_GTEST_PROP(MemoryProperty, MoreExpertsNeverHoldLess, ()) {
  Work work = any_work();
  RC_PRE(work.shape.is_moe());
  work.trainer.reset();
  work.software = software_of(static_cast<Framework>(*rc::gen::inRange(0, 15)), work.card);
  const Bytes before = need_of(work).total();
  const double each = work.shape.moe_layers * work.shape.mlp_matrices * work.shape.dim *
                      work.shape.experts * work.shape.expert_ffn;
  work.shape.experts *= 2;
  work.shape.body_parameters += each;
  work.shape.parameters += each;
  RC_ASSERT(need_of(work).total() >= before);
}

}  // namespace
}  // namespace assay::plan
