// An outline of one rank against the program that would be executed, and of many ranks against
// what must not change when a step is cut.
#include "step/outline.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <tuple>

#include "spec/load.h"
#include "spec/parameters.h"
#include "spec/presets.h"
#include "spec/testing/model_shapes.h"
#include "step/moved_bytes.h"

namespace assay::step {
namespace {

spec::ModelSpec outlined_model() {
  return {.vocab = 1003,
          .dim = 128,
          .layers = 5,
          .heads = 8,
          .kv_heads = 4,
          .head_dim = 16,
          .ffn = 192,
          .context = 64};
}

struct Total {
  double count = 0;
  double flops = 0;
  double bytes = 0;
};
using Key = std::tuple<Phase, Kind, Part>;

std::map<Key, Total> totals_of(const Program& p) {
  std::map<Key, Total> totals;
  for (const Op& op : p.ops) {
    if (op.phase == Phase::kOptimizer) continue;  // outlines are of micro-batches
    Total& total = totals[{op.phase, op.kind, op.part}];
    total.count += 1;
    total.flops += op.flops;
    total.bytes += moved_bytes(op, p.buffers).total();
  }
  return totals;
}

std::map<Key, Total> totals_of(const Outline& outline) {
  std::map<Key, Total> totals;
  for (const OutlineOp& op : outline.ops) {
    Total& total = totals[{op.phase, op.kind, op.part}];
    total.count += op.count;
    total.flops += op.count * op.flops;
    total.bytes += op.count * op.bytes;
  }
  return totals;
}

TEST(StepOutline, OfOneRankMatchesItsProgram) {
  for (const auto& [shape, model] : spec::testing::model_shapes(outlined_model())) {
    for (const auto policy : {spec::Recompute::kNone, spec::Recompute::kCheap,
                              spec::Recompute::kFfn, spec::Recompute::kFull}) {
      for (const auto precision :
           {spec::Precision::kFp32, spec::Precision::kBf16, spec::Precision::kFp8}) {
        for (const auto optimizer : {spec::Optimizer::kAdamw, spec::Optimizer::kMuon}) {
          const Numerics numerics = numerics_of(precision);
          const auto program = build(model, {.numerics = numerics,
                                             .recompute = policy,
                                             .optimizer = optimizer,
                                             .sequence = 64,
                                             .micro_batch = 3,
                                             .accumulate = 4});
          ASSERT_TRUE(program.has_value());
          const auto expected = totals_of(*program);
          const auto outlined = totals_of(outline(model, {.numerics = numerics,
                                                          .recompute = policy,
                                                          .optimizer = optimizer,
                                                          .sequence = 64,
                                                          .micro_batch = 3,
                                                          .accumulate = 4}));
          for (const auto& [key, total] : expected) {
            const auto& [phase, kind, part] = key;
            const std::string name = std::string(to_text(phase)) + " " +
                                     std::string(to_text(kind)) + " " + std::string(to_text(part));
            const auto found = outlined.find(key);
            ASSERT_NE(found, outlined.end()) << name;
            EXPECT_DOUBLE_EQ(found->second.count, total.count) << name;
            EXPECT_NEAR(found->second.flops, total.flops, 1e-9 * total.flops) << name;
            EXPECT_NEAR(found->second.bytes, total.bytes, 1e-9 * total.bytes) << name;
          }
          EXPECT_EQ(outlined.size(), expected.size());
        }
      }
    }
  }
}

TEST(StepOutline, OfThePresetsHasTheFlopsOfTheirPrograms) {
  for (const char* name : {"llama3-8b", "llama3-70b", "gpt2-124m"}) {
    const spec::ModelSpec model = std::get<spec::ModelSpec>(spec::load(name)->spec);
    const Numerics numerics = numerics_of(spec::Precision::kBf16);
    const auto program = build(model, {.numerics = numerics, .sequence = 1024, .micro_batch = 4});
    EXPECT_NEAR(outline(model, {.numerics = numerics, .sequence = 1024, .micro_batch = 4}).flops() /
                    program->flops(),
                1.0, 1e-12);
  }
}

TEST(StepOutline, HasEveryParameterAndTheFlopsOfThoseThatATokenMeets) {
  for (const std::string& name : spec::preset_names(spec::Kind::kModel)) {
    const spec::ModelSpec model = std::get<spec::ModelSpec>(spec::load(name)->spec);
    const Outline outlined =
        outline(model, {.numerics = numerics_of(spec::Precision::kBf16), .sequence = 256});
    const spec::Parameters expected = spec::parameters_of(model);
    EXPECT_NEAR(outlined.parameters / static_cast<double>(expected.total), 1.0, 2e-3) << name;
    // Six flops for each parameter that multiplies a token, and attention's.
    double idle = 0;
    double gates = 0;
    for (const spec::ParameterGroup& group : expected.groups) {
      if (group.expert && group.role == spec::Role::kMatrix) {
        idle +=
            static_cast<double>(group.parameters()) *
            (1 - static_cast<double>(model.experts_per_token) / static_cast<double>(model.experts));
      }
      if (group.name == "value_gate") gates += static_cast<double>(group.parameters());
    }
    const double attention = 7.0 * 256 * static_cast<double>(model.q_dim() * model.layers);
    const double met = static_cast<double>(expected.matmul) - idle - gates;
    EXPECT_NEAR(outlined.flops() / (256 * (6 * met + attention)), 1.0, 5e-3) << name;
  }
}

TEST(StepOutline, TensorRanksShareOutTheParameters) {
  const spec::ModelSpec model = std::get<spec::ModelSpec>(spec::load("nanochat-d24")->spec);
  OutlineChoices choices{.numerics = numerics_of(spec::Precision::kBf16), .sequence = 64};
  const double alone = outline(model, choices).parameters;
  choices.cut.tensor = 2;
  EXPECT_NEAR(2 * outline(model, choices).parameters / alone, 1.0, 1e-4);
}

TEST(StepOutline, StagesShareOutTheParameters) {
  for (const auto& [shape, model] : spec::testing::model_shapes(outlined_model())) {
    OutlineChoices choices{.numerics = numerics_of(spec::Precision::kBf16), .sequence = 64};
    const double alone = outline(model, choices).parameters;
    double together = 0;
    for (int stage = 0; stage < 5; ++stage) {
      choices.cut.layers = 1;
      choices.cut.first = stage == 0;
      choices.cut.last = stage == 4;
      together += outline(model, choices).parameters;
    }
    // A tied table is on the first stage and on the last.
    const double twice = model.tied ? 1024.0 * 128 : 0;
    EXPECT_DOUBLE_EQ(together, alone + twice) << shape;
  }
}

TEST(StepOutline, OfExpertRanksTakesTokensThereAndBack) {
  spec::ModelSpec model = outlined_model();
  model.experts = 8;
  model.experts_per_token = 2;
  OutlineChoices choices{.numerics = numerics_of(spec::Precision::kBf16), .sequence = 64};
  const double alone = outline(model, choices).flops();
  choices.cut.expert = 4;
  const Outline spread = outline(model, choices);
  EXPECT_NEAR(spread.flops(), alone, 1e-9 * alone);  // as many tokens come as go
  double exchanges = 0;
  for (const OutlineCollective& c : spread.collectives) {
    EXPECT_EQ(c.collective.kind, CollectiveKind::kAllToAll);
    EXPECT_EQ(c.collective.elements, 64 * 2 * 128);
    exchanges += c.count;
  }
  EXPECT_EQ(exchanges, 4 * 5);
}

// What ranks compute together is what one would: cutting repeats nothing that costs flops.
RC_GTEST_PROP(StepOutline, CutsShareOutTheFlops, ()) {
  const spec::ModelSpec model = outlined_model();
  OutlineChoices choices{.numerics = numerics_of(spec::Precision::kBf16),
                         .sequence = 64,
                         .micro_batch = 4,
                         .accumulate = 2};
  const double alone = outline(model, choices).flops();
  choices.cut.tensor = *rc::gen::element(1, 2, 4);
  choices.cut.context = *rc::gen::element(1, 2, 8);
  choices.cut.sequence_parallel = choices.cut.tensor > 1 && *rc::gen::arbitrary<bool>();
  double together = 0;
  const std::int64_t stages = *rc::gen::element(1, 5);
  for (std::int64_t stage = 0; stage < stages; ++stage) {
    choices.cut.layers = model.layers / stages;
    choices.cut.first = stage == 0;
    choices.cut.last = stage + 1 == stages;
    together += outline(model, choices).flops() *
                static_cast<double>(choices.cut.tensor * choices.cut.context);
  }
  // Rows of the vocabulary are padded before they are cut.
  RC_ASSERT(std::abs(together / alone - 1) < 1e-9);
}

TEST(StepOutline, OfTensorRanksSumsTwiceInEveryLayerAndPass) {
  OutlineChoices choices{.numerics = numerics_of(spec::Precision::kBf16),
                         .sequence = 64,
                         .micro_batch = 4,
                         .accumulate = 2};
  choices.cut.tensor = 4;
  std::map<Phase, double> sums;
  for (const OutlineCollective& c : outline(outlined_model(), choices).collectives) {
    EXPECT_EQ(c.collective.kind, CollectiveKind::kAllReduce);
    EXPECT_EQ(c.collective.bytes(), 64 * 4 * 128 * 2);
    EXPECT_EQ(c.collective.ranks, 4);
    sums[c.phase] += c.count;
  }
  // In each layer, and once after the table or before the head.
  EXPECT_EQ(sums[Phase::kForward], (2 * 5 + 1) * 2);
  EXPECT_EQ(sums[Phase::kBackward], (2 * 5 + 1) * 2);
  // Sequence parallelism sends as much, in other words.
  double sent = 0;
  for (const bool parallel : {false, true}) {
    choices.cut.sequence_parallel = parallel;
    double bytes = 0;
    for (const OutlineCollective& c : outline(outlined_model(), choices).collectives) {
      bytes += c.count * sent_bytes(c.collective);
    }
    if (!parallel) sent = bytes;
    EXPECT_DOUBLE_EQ(bytes, sent);
  }
}

}  // namespace
}  // namespace assay::step
