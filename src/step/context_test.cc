// Context parallelism: which rank has which tokens, and that together they do what one rank does.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "step/memory_plan.h"
#include "step/program.h"

namespace assay::step {
namespace {

spec::ModelSpec shared_model() {
  return {.vocab = 100,
          .dim = 24,
          .layers = 3,
          .heads = 4,
          .kv_heads = 2,
          .head_dim = 6,
          .ffn = 40,
          .context = 64};
}

Program shared_by(std::int64_t ranks, std::int64_t rank, std::int64_t sequence,
                  spec::Recompute recompute = spec::Recompute::kNone) {
  auto program = build(shared_model(), {.layout = *layout_of({.dp = 1, .cp = ranks}, rank),
                                        .recompute = recompute,
                                        .sequence = sequence,
                                        .micro_batch = 2,
                                        .accumulate = 2});
  EXPECT_TRUE(program.has_value());
  return *std::move(program);
}

RC_GTEST_PROP(StepContext, EveryTokenIsOnOneRank, ()) {
  const std::int64_t ranks = *rc::gen::inRange(1, 9);
  const std::int64_t piece = *rc::gen::inRange(1, 9);
  const std::int64_t sequence = 2 * ranks * piece;
  std::vector<int> had(static_cast<std::size_t>(sequence));
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    const SequencePart part = part_of_sequence(sequence, {rank, ranks});
    RC_ASSERT(part.tokens * ranks == sequence);
    for (std::int64_t row = 0; row < 2 * part.tokens; ++row) {
      const std::int64_t position = part.position(row);
      ++had[static_cast<std::size_t>(position)];
      RC_ASSERT(part.row_of(position) == row % part.tokens);
    }
    for (std::int64_t position = 0; position < sequence; ++position) {
      const std::int64_t row = part.row_of(position);
      RC_ASSERT(row == -1 || part.position(row) == position);
    }
  }
  for (const int times : had) RC_ASSERT(times == 2);  // once in each of two sequences
}

// Ranks do the same amount of work, and together exactly that of one: attention and products.
RC_GTEST_PROP(StepContext, RanksDivideTheWorkEvenly, ()) {
  const std::int64_t ranks = *rc::gen::inRange(2, 6);
  const std::int64_t sequence = 2 * ranks * *rc::gen::inRange(1, 5);
  const auto recompute = *rc::gen::element(spec::Recompute::kNone, spec::Recompute::kCheap,
                                           spec::Recompute::kFfn, spec::Recompute::kFull);
  const Program one = shared_by(1, 0, sequence, recompute);
  double sum = 0;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    const Program p = shared_by(ranks, rank, sequence, recompute);
    RC_ASSERT(p.micro_tokens() * ranks == one.micro_tokens());
    RC_ASSERT(p.global_step_tokens() == one.global_step_tokens());
    RC_ASSERT(std::abs(p.flops() * static_cast<double>(ranks) / one.flops() - 1) < 1e-12);
    sum += p.flops();
    // And need the same memory.
    const MemoryPlan plan = plan_memory(p);
    RC_ASSERT(plan.bytes == plan_memory(shared_by(ranks, 0, sequence, recompute)).bytes);
  }
  RC_ASSERT(std::abs(sum / one.flops() - 1) < 1e-12);
}

// Each query sees its own key and all before it, in one op.
TEST(StepContext, QueriesSeeTheKeysUpToTheirOwn) {
  for (const std::int64_t ranks : {2, 3}) {
    const std::int64_t sequence = 24;
    std::multiset<std::int64_t> ends;  // of pieces
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      const Program p = shared_by(ranks, rank, sequence);
      for (const Op& op : p.ops) {
        if (op.kind != OpKind::kAttention || op.layer != 0 || op.micro != 0) continue;
        EXPECT_EQ(op.in[0].rows, sequence / (2 * ranks));
        EXPECT_EQ(op.in[1].rows, op.in[2].rows);
        ends.insert(op.in[1].rows);
        // Where the keys of its sequence begin.
        EXPECT_EQ(op.in[1].offset % (sequence * op.in[1].stride), 0);
      }
    }
    std::multiset<std::int64_t> expected;
    for (std::int64_t piece = 1; piece <= 2 * ranks; ++piece) {
      for (int sequences = 0; sequences < 2; ++sequences) {
        expected.insert(piece * sequence / (2 * ranks));
      }
    }
    EXPECT_EQ(ends, expected);
  }
}

// Keys and values are gathered for the forward pass and again for the backward pass, where the
// MLP's gradients are computed meanwhile; nothing keeps them in between.
TEST(StepContext, KeysAreGatheredAgainWhileTheMlpIsComputed) {
  for (const auto recompute :
       {spec::Recompute::kNone, spec::Recompute::kCheap, spec::Recompute::kFull}) {
    const Program p = shared_by(2, 1, 16, recompute);
    std::map<Phase, int> gathers;
    int products = -1;
    for (const Op& op : p.ops) {
      if (op.axis == Axis::kContext && op.kind == OpKind::kAllGather) {
        ++gathers[op.phase];
        products = 0;
      }
      if (op.kind == OpKind::kMatmul && products >= 0) ++products;
      if (op.axis == Axis::kContext && op.kind == OpKind::kWait && op.in[0].cols < op.out[0].cols) {
        EXPECT_GE(products, 1);  // of gradients: the attention's output product's
      }
      const bool again = op.phase == Phase::kRecompute && op.kind == OpKind::kOrderKeys;
      const bool kept = recompute != spec::Recompute::kFull || op.layer == 2;
      if (again && kept) {
        EXPECT_GE(products, 4) << to_text(op, p);
      }
      if (op.kind == OpKind::kOrderKeys) products = 0;
    }
    EXPECT_EQ(gathers[Phase::kForward], 6);  // of three layers and two micro-batches
    EXPECT_EQ(gathers[Phase::kRecompute], 6);
  }
  const auto activations = [](std::int64_t ranks) {
    return static_cast<double>(plan_memory(shared_by(ranks, 0, 64)).of(Storage::kActivations));
  };
  EXPECT_LT(activations(4), 0.5 * activations(1));
}

TEST(StepContext, RefusesSequencesThatCannotBeCut) {
  const auto program =
      build(shared_model(), {.layout = *layout_of({.dp = 1, .cp = 3}, 0), .sequence = 15});
  ASSERT_FALSE(program.has_value());
  EXPECT_EQ(program.error().where, "batch.sequence");
  EXPECT_NE(program.error().line().find("multiple of 6"), std::string::npos);
}

}  // namespace
}  // namespace assay::step
