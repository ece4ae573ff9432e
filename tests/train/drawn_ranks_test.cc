// Any model on any layout trains what one rank trains: drawn at random, on CPU threads.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstring>

#include "comm/local.h"
#include "spec/enum_names.h"
#include "train/cpu/cpu_backend.h"
#include "train/rank_run.h"

namespace assay::train {
namespace {

using testing::Trained;

struct Drawn {
  spec::ModelSpec model;
  spec::LayoutSpec layout;
  step::Choices choices;
  std::int64_t micros = 1;

  [[nodiscard]] int ranks() const { return static_cast<int>(layout.dp * layout.inner_ranks()); }
  // Sums inside products or attention are cut: not the same bits as one rank's.
  [[nodiscard]] bool cuts_sums() const { return layout.tp > 1 || layout.cp > 1; }
  [[nodiscard]] std::string text() const {
    return fmt::format(
        "layers {} dim {} heads {}/{} x {} ffn {} vocab {}{}{}; dp {} fsdp {} zero {} {} tp {}{} "
        "cp "
        "{} pp {} x {} {}; micros {} recompute {} {}{}",
        model.layers, model.dim, model.heads, model.kv_heads, model.head_dim, model.ffn,
        model.vocab, model.tied ? " tied" : "", model.bias ? " bias" : "", layout.dp, layout.fsdp,
        layout.zero, spec::to_text(layout.unit), layout.tp, layout.sequence_parallel ? " sp" : "",
        layout.cp, layout.pp, layout.pp_chunks, spec::to_text(layout.pp_schedule), micros,
        spec::to_text(choices.recompute), spec::to_text(choices.optimizer),
        choices.document_mask ? " mask" : "");
  }
};

std::int64_t between(std::int64_t least, std::int64_t most) {
  return *rc::gen::inRange<std::int64_t>(least, most + 1);
}

Drawn drawn() {
  Drawn d;
  spec::LayoutSpec& layout = d.layout;
  layout.tp = *rc::gen::element<std::int64_t>(1, 1, 2, 3);
  layout.sequence_parallel = layout.tp > 1 && *rc::gen::arbitrary<bool>();
  layout.cp = *rc::gen::element<std::int64_t>(1, 1, 1, 2);
  layout.fsdp = between(1, 3);
  layout.zero = between(1, 3);
  layout.unit = *rc::gen::element(spec::ShardUnit::kBlock, spec::ShardUnit::kModule);
  layout.pp = *rc::gen::element<std::int64_t>(1, 1, 2, 3);
  layout.dp = *rc::gen::element<std::int64_t>(1, 1, 2);
  // Heads and widths that nothing but tp divides, vocabularies and layers that nothing divides.
  d.model = {.vocab = between(17, 150),
             .dim = 2 * between(4, 12),
             .layers = between(layout.pp, 5),
             .heads = 1,
             .kv_heads = layout.tp * between(1, 2),
             .head_dim = 2 * between(1, 4),
             .ffn = layout.tp * between(3, 11),
             .context = 4 * layout.tp * layout.cp};
  d.model.heads = d.model.kv_heads * between(1, 3);
  d.model.tied = *rc::gen::arbitrary<bool>();
  d.model.bias = *rc::gen::arbitrary<bool>();
  d.model.norm =
      *rc::gen::element(spec::Norm::kRmsNorm, spec::Norm::kRmsNormPlain, spec::Norm::kLayerNorm);
  d.model.qk_norm =
      *rc::gen::element(spec::QkNorm::kNone, spec::QkNorm::kPlain, spec::QkNorm::kLearned);
  d.model.mlp = *rc::gen::element(spec::Mlp::kSwiglu, spec::Mlp::kGelu, spec::Mlp::kRelu2);
  d.model.positions = *rc::gen::element(spec::Positions::kRope, spec::Positions::kLearned);

  d.choices.sequence = d.model.context;
  d.choices.micro_batch = between(1, 2);
  d.choices.recompute = *rc::gen::element(spec::Recompute::kNone, spec::Recompute::kCheap,
                                          spec::Recompute::kFfn, spec::Recompute::kFull);
  const bool whole = layout.tp == 1 && (layout.zero < 3 || layout.fsdp == 1);
  if (whole && *rc::gen::arbitrary<bool>()) d.choices.optimizer = spec::Optimizer::kMuon;
  std::int64_t accumulate = between(1, 3);
  if (layout.pp > 1) {
    layout.pp_schedule =
        *rc::gen::element(spec::PipelineSchedule::kGpipe, spec::PipelineSchedule::k1f1b,
                          spec::PipelineSchedule::kZbH1, spec::PipelineSchedule::kInterleaved);
    const bool interleaved = layout.pp_schedule == spec::PipelineSchedule::kInterleaved;
    if (interleaved && d.model.layers >= 2 * layout.pp) {
      layout.pp_chunks = 2;
      accumulate = layout.pp;
    } else if (interleaved) {
      layout.pp_schedule = spec::PipelineSchedule::k1f1b;
    }
  }
  d.micros = accumulate * layout.dp * layout.fsdp;
  d.choices.document_mask = layout.cp == 1 && *rc::gen::arbitrary<bool>();
  return d;
}

Trained train(const Drawn& d, const spec::LayoutSpec& layout, std::int64_t steps) {
  Trained trained;
  std::mutex mutex;
  const auto ranks = static_cast<int>(layout.dp * layout.inner_ranks());
  const auto done = comm::run_local(ranks, [&](comm::Communicator& c) -> base::Result<void> {
    step::Choices own = d.choices;
    ASSAY_TRY(own.layout, step::layout_of(layout, c.rank()));
    ASSAY_TRY(const auto groups, RankGroups::make(c, own.layout));
    const auto make = [&]() -> base::Result<std::unique_ptr<Backend>> {
      return cpu::make_cpu_backend(1, groups.get());
    };
    return testing::run_rank({.model = d.model,
                              .choices = own,
                              .micros = d.micros,
                              .steps = steps,
                              .epsilon = 1e-6,
                              .make_backend = make},
                             trained, mutex);
  });
  if (!done) RC_FAIL(done.error().line());
  return trained;
}

std::vector<float> floats_of(const std::vector<std::byte>& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

RC_GTEST_PROP(DrawnRanks, TrainWhatOneRankTrains, ()) {
  const Drawn d = drawn();
  RC_PRE(d.ranks() <= 24);
  RC_LOG() << d.text() << "\n";
  spec::LayoutSpec alone;
  alone.dp = 1;
  if (d.cuts_sums()) {
    const Trained one = train(d, alone, 1);
    const Trained many = train(d, d.layout, 1);
    RC_ASSERT(testing::gradients_apart(one, many, floats_of) < 2e-4);
    for (const auto which : {step::Scalar::kLossSum, step::Scalar::kNorm, step::Scalar::kCount}) {
      const double expected = one.scalars[0][static_cast<std::size_t>(which)];
      const double found = many.scalars[0][static_cast<std::size_t>(which)];
      RC_ASSERT(std::abs(found - expected) <= 1e-4 * std::abs(expected));
    }
    RC_ASSERT(train(d, d.layout, 1).state == many.state);
    return;
  }
  const Trained one = train(d, alone, 3);
  const Trained many = train(d, d.layout, 3);
  RC_ASSERT(many.scalars == one.scalars);
  std::string different;
  for (const auto& [name, bytes] : one.state) {
    if (many.state.at(name) != bytes) different += " " + name;
  }
  RC_ASSERT(different == "");
  RC_ASSERT(many.state.size() == one.state.size());
}

// Longer: what differs by a bit somewhere has time to spread.
TEST(DrawnRanks, AreEqualToTheLastBitAfterFiftySteps) {
  Drawn d;
  d.model = {.vocab = 61,
             .dim = 16,
             .layers = 3,
             .heads = 3,
             .kv_heads = 1,
             .head_dim = 4,
             .ffn = 21,
             .context = 8};
  d.choices.sequence = 8;
  d.choices.recompute = spec::Recompute::kFfn;
  d.micros = 30;
  spec::LayoutSpec alone;
  alone.dp = 1;
  const Trained one = train(d, alone, 50);
  using spec::PipelineSchedule;
  for (const spec::LayoutSpec& layout : {
           spec::LayoutSpec{.dp = 2, .fsdp = 3, .zero = 3},
           {.dp = 5},
           {.dp = 1, .fsdp = 6, .zero = 1},
           {.dp = 1, .fsdp = 2, .zero = 2, .pp = 3},
           {.dp = 1, .pp = 3, .pp_schedule = PipelineSchedule::kZbH1},
       }) {
    const Trained many = train(d, layout, 50);
    EXPECT_EQ(many.scalars, one.scalars);
    EXPECT_TRUE(many.state == one.state) << layout.dp << " " << layout.fsdp << " " << layout.pp;
  }
}

// Though the step before has gathered some for the next one: loss of a forward pass through weights
// that were written since, against one of a rank that had no other.
TEST(DrawnRanks, WeightsThatAreWrittenBetweenStepsAreUsed) {
  const spec::ModelSpec model{.vocab = 61,
                              .dim = 16,
                              .layers = 3,
                              .heads = 3,
                              .kv_heads = 1,
                              .head_dim = 4,
                              .ffn = 21,
                              .context = 8};
  const auto loss_of_last = [&](const std::vector<std::uint64_t>& seeds) {
    float loss = 0;
    const auto done = comm::run_local(2, [&](comm::Communicator& c) -> base::Result<void> {
      ASSAY_TRY(const step::Layout layout, step::layout_of({.dp = 1, .fsdp = 2}, c.rank()));
      ASSAY_TRY(const auto groups, RankGroups::make(c, layout));
      const auto backend = cpu::make_cpu_backend(1, groups.get());
      ASSAY_TRY(const step::Program program, step::build(model, {.layout = layout, .sequence = 8}));
      const step::MemoryPlan plan = step::plan_memory(program);
      ASSAY_TRY_VOID(backend->prepare(program, plan));
      for (const std::uint64_t seed : seeds) {
        ASSAY_TRY_VOID(initialise(*backend, program, seed));
        ASSAY_TRY(const Scalars scalars,
                  run_step(*backend, program, {.learning_rate = 0.1, .counted_targets = 16},
                           [&](std::int32_t, auto tokens, auto targets) -> base::Result<void> {
                             testing::fill_batch(program, c.rank(), tokens, targets);
                             return {};
                           }));
        if (c.rank() == 0) loss = scalars[static_cast<std::size_t>(step::Scalar::kLossSum)];
      }
      return {};
    });
    EXPECT_TRUE(done.has_value()) << done.error().line();
    return loss;
  };
  EXPECT_EQ(loss_of_last({5, 7}), loss_of_last({7}));
  EXPECT_NE(loss_of_last({5}), loss_of_last({7}));
}

}  // namespace
}  // namespace assay::train
