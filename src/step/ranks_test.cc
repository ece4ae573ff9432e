// Programs of several ranks: who has which range, what is said to whom, and that one rank says
// nothing.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>

#include "step/memory_plan.h"
#include "step/program.h"

namespace assay::step {
namespace {

spec::ModelSpec narrow() {
  return {.vocab = 100,
          .dim = 24,
          .layers = 3,
          .heads = 4,
          .kv_heads = 2,
          .head_dim = 6,
          .ffn = 40,
          .context = 16};
}

Program of_rank(std::int64_t rank, std::int64_t ranks,
                spec::Optimizer optimizer = spec::Optimizer::kAdamw,
                spec::Precision precision = spec::Precision::kFp32) {
  auto program = build(narrow(), {.numerics = numerics_of(precision),
                                  .layout = {.data = {rank, ranks}},
                                  .optimizer = optimizer,
                                  .sequence = 16,
                                  .micro_batch = 2,
                                  .accumulate = 2});
  EXPECT_TRUE(program.has_value());
  return *std::move(program);
}

std::vector<std::string> after_micro_batches(const Program& p) {
  std::vector<std::string> lines;
  for (const Op& op : p.ops) {
    if (op.phase == Phase::kOptimizer) lines.push_back(to_text(op, p));
  }
  return lines;
}

TEST(StepRanks, OneRankSendsNothing) {
  const std::vector<std::string> expected = {
      "optimizer 0 - all gradient_norm 1x20352:f32 1x896:f32 -> 1x6:f32",
      "optimizer 0 - decayed adamw 1x20352:f32 1x6:f32 -> 1x20352:f32 1x20352:f32 1x20352:f32",
      "optimizer 0 - undecayed adamw 1x896:f32 1x6:f32 -> 1x896:f32 1x896:f32 1x896:f32"};
  EXPECT_EQ(after_micro_batches(of_rank(0, 1)), expected);
}

TEST(StepRanks, SumThenUpdateTheirRangeThenGather) {
  const std::vector<std::string> expected = {
      "optimizer 0 - loss all_reduce 1x3:f32 -> 1x3:f32 data x3",
      "optimizer 0 - decayed reduce_scatter 1x20352:f32 -> 1x6784:f32 data x3",
      "optimizer 0 - undecayed reduce_scatter 1x1152:f32 -> 1x384:f32 data x3",
      "optimizer 0 - all range_norm 1x6784:f32 1x384:f32 -> 1x1:f32",
      "optimizer 0 - all all_gather 1x1:f32 -> 1x3:f32 data x3",
      "optimizer 0 - all gradient_norm 1x3:f32 -> 1x6:f32",
      "optimizer 0 - decayed adamw 1x6784:f32 1x6:f32 -> 1x6784:f32 1x6784:f32 1x6784:f32",
      "optimizer 0 - undecayed adamw 1x384:f32 1x6:f32 -> 1x384:f32 1x384:f32 1x384:f32",
      "optimizer 0 - decayed all_gather 1x6784:f32 -> 1x20352:f32 data x3",
      "optimizer 0 - undecayed all_gather 1x384:f32 -> 1x1152:f32 data x3"};
  for (std::int64_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(after_micro_batches(of_rank(rank, 3)), expected);
  }
}

RC_GTEST_PROP(StepRanks, EveryElementHasOneRank, ()) {
  const std::int64_t ranks = *rc::gen::inRange(1, 20);
  const auto optimizer = *rc::gen::element(spec::Optimizer::kAdamw, spec::Optimizer::kMuon);
  std::map<std::string, std::int64_t> held;
  std::int64_t ends[kGroups] = {};
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    const Program p = of_rank(rank, ranks, optimizer);
    for (int i = 0; i < kGroups; ++i) {
      RC_ASSERT(p.groups[i].own.first == ends[i]);
      RC_ASSERT(p.groups[i].own.count * ranks == p.groups[i].elements);
      ends[i] = p.groups[i].own.end();
    }
    for (const Parameter& parameter : p.parameters) {
      const Range own = p.part_of(parameter, rank);
      RC_ASSERT(own.count == 0 || own.first == held[parameter.name]);
      held[parameter.name] += own.count;
      if (parameter.group == Group::kMuon) {
        RC_ASSERT(own.count == 0 || own.count == parameter.elements());
      }
    }
  }
  for (const Parameter& parameter : of_rank(0, ranks, optimizer).parameters) {
    RC_ASSERT(held[parameter.name] == parameter.elements());
  }
}

TEST(StepRanks, UpdateEveryMatrixOfMuonOnce) {
  for (const std::int64_t ranks : {1, 2, 3, 5, 12, 30}) {
    std::map<std::pair<std::int32_t, Part>, int> updates;
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      const Program p = of_rank(rank, ranks, spec::Optimizer::kMuon);
      const GroupBuffers& group = p.of(Group::kMuon);
      for (const Op& op : p.ops) {
        if (op.kind != Kind::kMuon) continue;
        ++updates[{op.layer, op.part}];
        // The momentum is as far into this rank's range as the weight.
        EXPECT_EQ(op.out.back().offset + group.own.first, op.out.front().offset);
        EXPECT_GE(op.out.back().offset, 0);
        EXPECT_LE(op.out.back().offset + op.out.back().elements(), group.own.count);
      }
    }
    EXPECT_EQ(updates.size(), 12U);
    for (const auto& [matrix, times] : updates) EXPECT_EQ(times, 1);
  }
}

TEST(StepRanks, KeepTheOptimizersStateOfTheirRange) {
  const MemoryPlan one = plan_memory(of_rank(0, 1, {}, spec::Precision::kBf16));
  for (const std::int64_t ranks : {2, 4}) {
    const MemoryPlan plan = plan_memory(of_rank(1, ranks, {}, spec::Precision::kBf16));
    for (const Storage storage : {Storage::kMoments, Storage::kRemainders}) {
      const auto whole = static_cast<double>(one.of(storage));
      const auto part = static_cast<double>(plan.of(storage) * ranks);
      EXPECT_GE(part, whole);
      EXPECT_LE(part, whole * 1.1);
    }
    EXPECT_NEAR(static_cast<double>(plan.of(Storage::kWeights)),
                static_cast<double>(one.of(Storage::kWeights)), 4096);
  }
}

TEST(StepLayout, IsTheSpecsOrRefused) {
  const auto found = layout_of({.dp = 1, .fsdp = 4, .zero = 1}, 3);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->data.rank, 3);
  EXPECT_EQ(found->data.ranks, 4);
  EXPECT_TRUE(layout_of({.dp = 1}, 0).has_value());
  EXPECT_EQ(layout_of({.dp = 2, .fsdp = 2, .zero = 1}, 0).error().line(),
            "layout.dp: ranks that share nothing cannot be trained yet; "
            "set layout.dp=1 layout.fsdp=4 layout.zero=1");
  EXPECT_EQ(layout_of({.dp = 1, .fsdp = 2}, 0).error().where, "layout.zero");
  EXPECT_EQ(layout_of({.dp = 1, .tp = 2}, 0).error().where, "layout.tp");
}

}  // namespace
}  // namespace assay::step
