#include "plan/model/memory.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "plan/testing/work.h"

namespace assay::plan {
namespace {

using testing::any_work;
using testing::llama_8b_on_h100;

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
TEST(Memory, AssayKeepsWhatItsPlanSays) {
  const std::pair<RecomputeKind, double> cases[] = {{RecomputeKind::kNone, 139392},
                                                    {RecomputeKind::kCheap, 94336},
                                                    {RecomputeKind::kFfn, 36992},
                                                    {RecomputeKind::kFull, 8192}};
  for (const auto& [kind, bytes] : cases) {
    Work work = with_assay(kind);
    const double whole = need_of(work).activations;
    work.shape.layers -= 1;
    EXPECT_DOUBLE_EQ((whole - need_of(work).activations) / work.batch.sequence, bytes);
  }
}

TEST(Memory, BytesPerParameter) {
  const auto states = [](const Work& work) {
    const MemoryNeed need = need_of(work);
    return (need.parameters + need.gradients + need.optimizer) / work.shape.parameters;
  };
  Work work = with_assay(RecomputeKind::kNone);
  EXPECT_DOUBLE_EQ(states(work), 10);
  work.degrees.dp = 8;
  EXPECT_DOUBLE_EQ(states(work), 2 + 2 + 6.0 / 8);
  work.software.shards_optimizer = false;
  EXPECT_DOUBLE_EQ(states(work), 10);

  work = llama_8b_on_h100();
  EXPECT_DOUBLE_EQ(states(work), 16.0 / 8);
  work.software.pure_bf16 = true;
  EXPECT_DOUBLE_EQ(states(work), 8.0 / 8);
  work.lora = true;
  EXPECT_DOUBLE_EQ(states(work), 2.0 / 8);
}

// FSDP has units unsharded, not the model; what keeps weights from the forward to the backward pass
// has all of them.
TEST(Memory, UnitsAreGathered) {
  Work work = llama_8b_on_h100();
  const double layer = 2 * work.shape.body_parameters / work.shape.layers;
  const double ends = 2 * 2 * work.shape.vocab * work.shape.dim;
  EXPECT_NEAR(need_of(work).gathered, 3 * layer + 2 * ends, 1);
  work.degrees.fsdp = 512;
  EXPECT_NEAR(need_of(work).gathered, 3 * layer + 2 * ends, 1);
  work.degrees.units = 2;
  EXPECT_NEAR(need_of(work).gathered, 1.5 * layer + 2 * ends, 1);
  work.software.gathers_once = true;
  EXPECT_DOUBLE_EQ(need_of(work).gathered, 2 * work.shape.parameters);
}

// The first stage keeps a micro-batch for each stage, the last one only one, and the logits.
TEST(Memory, TheLargestStageOfAPipeline) {
  Work work = with_assay(RecomputeKind::kNone);
  work.degrees = {.pp = 4, .ranks = 4};
  work.batch.micros = 16;
  const MemoryNeed many = need_of(work);
  EXPECT_EQ(many.stage, 0);
  work.degrees.gpipe = true;
  EXPECT_GT(need_of(work).activations, 3.9 * many.activations);
  work.degrees.gpipe = false;
  work.batch.micros = 1;  // that no stage waits with
  EXPECT_EQ(need_of(work).stage, 3);
}

RC_GTEST_PROP(MemoryProperty, PartsAreFiniteAndNoneIsNegative, ()) {
  const MemoryNeed need = need_of(any_work());
  RC_ASSERT(need.parameters > 0 && need.gradients >= 0 && need.optimizer >= 0);
  RC_ASSERT(need.activations > 0 && need.gathered >= 0 && need.workspace > 0);
  RC_ASSERT(std::isfinite(need.total()));
}

RC_GTEST_PROP(MemoryProperty, MoreShardsNeverHoldMoreState, ()) {
  Work work = any_work();
  RC_PRE(work.degrees.fsdp > 1);
  const MemoryNeed few = need_of(work);
  work.degrees.fsdp *= 2;
  const MemoryNeed many = need_of(work);
  RC_ASSERT(many.parameters + many.gradients + many.optimizer <
            few.parameters + few.gradients + few.optimizer);
  RC_ASSERT(many.activations == few.activations);
}

RC_GTEST_PROP(MemoryProperty, LargerMicroBatchesHoldMore, ()) {
  Work work = any_work();
  const double before = need_of(work).total();
  work.batch.micro_batch += 1;
  RC_ASSERT(need_of(work).total() > before);
}

RC_GTEST_PROP(MemoryProperty, FullRecomputationKeepsTheLeast, ()) {
  Work work = any_work();
  work.recompute = RecomputeKind::kFull;
  const double full = need_of(work).activations;
  work.recompute = static_cast<RecomputeKind>(*rc::gen::inRange(0, 4));
  RC_ASSERT(need_of(work).activations >= full);
}

}  // namespace
}  // namespace assay::plan
