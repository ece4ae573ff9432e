// With ZeRO 3: each exchange overlaps with computation, and consecutive steps, with evaluations in
// between, compute with the weights that were updated last.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <optional>

#include "step/memory_plan.h"
#include "step/testing/drawn_jobs.h"
#include "step/testing/exchange_windows.h"

namespace assay::step {
namespace {

using testing::ExchangeWindow;

// Flops of one block's forward pass; if some are mixtures, of the block with the fewest.
struct BlockFlops {
  double attention = 0;
  double mlp = 0;
  double scores = 0;  // of attention, without products with weights

  explicit BlockFlops(const Program& p) {
    std::map<std::int32_t, double> mlps;  // by layer
    for (const Op& op : p.ops) {
      if (op.phase != Phase::kForward || op.layer < 0 || op.micro != 0) continue;
      const bool of_attention = op.part == ModelPart::kQkv || op.part == ModelPart::kAttention ||
                                op.part == ModelPart::kAttentionOut;
      if (!of_attention) mlps[op.layer] += op.flops;
      if (!of_attention || op.layer > 0) continue;
      attention += op.flops;
      if (op.kind == OpKind::kAttention) scores += op.flops;
    }
    mlp = std::ranges::min_element(mlps, {}, [](const auto& one) { return one.second; })->second;
  }
  [[nodiscard]] double least(spec::ShardUnit unit) const {
    return unit == spec::ShardUnit::kBlock ? attention + mlp : std::min(attention, mlp);
  }
};

// The least that must be computed while a gradient of the last micro-batch is in flight. The first
// block's weights, whose gradients are computed last, overlap only with the squares of other units.
double least_at_the_end(const std::string& unit, const BlockFlops& block, spec::ShardUnit units) {
  if (unit == "embedding" || unit == "positions") return block.attention + block.mlp - block.scores;
  if (unit == "layers.0" || unit == "layers.0.attention") return 0;
  if (unit == "layers.0.mlp") return block.attention - block.scores;
  return block.least(units);
}

RC_GTEST_PROP(StepOverlap, ABlockIsComputedWhileAnythingLargeTravels, ()) {
  spec::JobSpec job = testing::drawn_job();
  job.layout.fsdp = *rc::gen::inRange(2, 5);
  job.layout.zero = 3;
  job.layout.pp = job.layout.pp_chunks = job.layout.tp = job.layout.cp = job.layout.ep = 1;
  job.layout.sequence_parallel = false;
  job.layout.pp_schedule = spec::PipelineSchedule::k1f1b;
  job.train.optimizer = spec::Optimizer::kAdamw;
  const std::int64_t ranks = job.layout.dp * job.layout.inner_ranks();
  const std::int64_t rank = *rc::gen::inRange<std::int64_t>(0, ranks);
  const Program p = build(job.model, testing::choices_of_rank(job, rank)).value();
  const BlockFlops block(p);
  RC_ASSERT(block.least(job.layout.unit) > 0 && block.scores > 0);
  // The cost of updating a block.
  double update = 0;
  double squares = 0;
  for (const Op& op : p.ops) {
    if (op.layer == 1 && op.kind == OpKind::kAdamw) update += moved_bytes(op, p.buffers).total();
    if (op.kind == OpKind::kNormSums && p.units[static_cast<std::size_t>(op.unit)].layer == 3) {
      squares += moved_bytes(op, p.buffers).total();
    }
  }
  int first = 0;
  int hidden_by_squares = 0;
  for (const ExchangeWindow& window : testing::exchange_windows(p)) {
    const Op& op = *window.issued;
    if (op.unit < 0) continue;  // losses and the norm: a few numbers
    if (window.for_next_step) {
      ++first;
      RC_ASSERT(window.bytes >= update);
      continue;
    }
    if (op.axis == Axis::kReplica) {
      RC_ASSERT(op.phase == Phase::kOptimizer);
      RC_ASSERT(window.bytes > 0);
      continue;
    }
    const std::string& unit = p.units[static_cast<std::size_t>(op.unit)].name;
    const bool at_end = op.kind == OpKind::kAllToAll && op.micro + 1 == p.choices.accumulate;
    const double least =
        at_end ? least_at_the_end(unit, block, job.layout.unit) : block.least(job.layout.unit);
    if (least == 0) {
      ++hidden_by_squares;
      RC_ASSERT(window.bytes >= squares);
    } else if (window.flops < least) {
      RC_FAIL(to_text(op, p) + " of " + unit);
    }
  }
  RC_ASSERT(hidden_by_squares == 1);
  RC_ASSERT(first == (job.model.positions == spec::Positions::kLearned ? 3 : 2));
}

// Which unit's weights a buffer holds, and which version.
struct Held {
  std::int32_t unit = -1;
  std::int64_t version = 0;
};

class Versions {
 public:
  explicit Versions(const Program& p)
      : p_(p), plan_(plan_memory(p)), updates_(p.units.size()), held_(p.buffers.size()) {
    for (std::size_t i = 0; i < p.buffers.size(); ++i) {
      if (is_place(static_cast<BufferId>(i))) places_.push_back(i);
    }
  }

  void execute(const Op& op) {
    for (const View& view : op.in) read(op, view);
    if (op.kind == OpKind::kWait) return;
    for (const View& view : op.out) write(view);
    const auto unit = static_cast<std::size_t>(op.unit);
    if (op.kind == OpKind::kAdamw || op.kind == OpKind::kMuon || op.kind == OpKind::kBalance) {
      ++updates_[unit];
    }
    if (op.kind == OpKind::kAllGather && op.unit >= 0 && op.axis == p_.units[unit].shard &&
        op.in[0].buffer == p_.units[unit].weights) {
      held_[static_cast<std::size_t>(op.out[0].buffer)] = Held{op.unit, updates_[unit]};
      ++gathers_;
    }
  }
  [[nodiscard]] std::int64_t read_places() const { return reads_; }
  [[nodiscard]] std::int64_t gathers() const { return gathers_; }

 private:
  [[nodiscard]] bool is_place(BufferId buffer) const {
    const std::string& name = p_.buffers[static_cast<std::size_t>(buffer)].name;
    return name.ends_with(" gathered") || name.starts_with("gathered ");
  }
  void read(const Op& op, const View& view) {
    if (!is_place(view.buffer) || op.is_exchange()) return;
    ++reads_;
    const std::optional<Held>& held = held_[static_cast<std::size_t>(view.buffer)];
    RC_ASSERT(held.has_value());
    // The op's own parameter, as of the last update.
    const bool is_its = std::ranges::any_of(p_.parameters, [&](const Parameter& parameter) {
      return parameter.unit == held->unit && parameter.layer == op.layer &&
             parameter.offset == view.offset && parameter.cols == view.cols;
    });
    if (!is_its) RC_FAIL(to_text(op, p_));
    RC_ASSERT(held->version == updates_[static_cast<std::size_t>(held->unit)]);
  }
  void write(const View& view) {
    const auto written = static_cast<std::size_t>(view.buffer);
    for (const std::size_t i : places_) {
      const bool overlaps = plan_.offset[i] < plan_.offset[written] + p_.buffers[written].bytes() &&
                            plan_.offset[written] < plan_.offset[i] + p_.buffers[i].bytes();
      if (held_[i] && overlaps) held_[i].reset();
    }
  }

  const Program& p_;
  MemoryPlan plan_;
  std::vector<std::int64_t> updates_;
  std::vector<std::optional<Held>> held_;  // by buffer
  std::vector<std::size_t> places_;        // buffers that weights are gathered to
  std::int64_t reads_ = 0;
  std::int64_t gathers_ = 0;
};

RC_GTEST_PROP(StepOverlap, StepsAndEvaluationsReadTheWeightsOfTheLastUpdate, ()) {
  spec::JobSpec job = testing::drawn_job();
  job.layout.fsdp = *rc::gen::inRange(2, 5);
  job.layout.zero = 3;
  job.train.optimizer = spec::Optimizer::kAdamw;
  const std::int64_t ranks = job.layout.dp * job.layout.inner_ranks();
  const std::int64_t rank = *rc::gen::inRange<std::int64_t>(0, ranks);
  const auto built = build(job.model, testing::choices_of_rank(job, rank));
  RC_PRE(built.has_value());
  const Program& p = *built;
  RC_ASSERT(!p.prologue.empty());
  Versions versions(p);
  for (const Op& op : p.prologue) versions.execute(op);
  std::int64_t gathers = versions.gathers();
  for (int round = 0; round < 5; ++round) {
    const bool evaluates = *rc::gen::arbitrary<bool>();
    for (const Op& op : p.ops) {
      if (!evaluates || (op.phase == Phase::kForward && op.micro == 0)) versions.execute(op);
    }
    RC_ASSERT(versions.gathers() > gathers);
    gathers = versions.gathers();
  }
  RC_ASSERT(versions.read_places() > 0);
}

// Counted by hand for four layers and two micro-batches: the prologue has two units, and a step
// gathers as many as if it gathered its own first ones.
TEST(StepOverlap, AStepGathersAsMuchAsWithoutThePrologue) {
  const spec::ModelSpec model{.vocab = 64,
                              .dim = 24,
                              .layers = 4,
                              .heads = 4,
                              .kv_heads = 4,
                              .head_dim = 6,
                              .ffn = 40,
                              .context = 16};
  const auto program = build(
      model, {.layout = *layout_of({.dp = 1, .fsdp = 2}, 0), .sequence = 16, .accumulate = 2});
  ASSERT_TRUE(program.has_value());
  std::map<std::string, int> gathers;
  for (const Op& op : program->ops) {
    if (op.kind != OpKind::kAllGather || op.unit < 0) continue;
    EXPECT_NE(op.phase, Phase::kOptimizer);
    ++gathers[program->units[static_cast<std::size_t>(op.unit)].name];
  }
  // The embedding and the head for each micro-batch. The third and fourth block are there when the
  // backward pass begins, the first and second when the second micro-batch does.
  const std::map<std::string, int> expected = {{"embedding", 2}, {"layers.0", 3}, {"layers.1", 3},
                                               {"layers.2", 2},  {"layers.3", 2}, {"head", 2}};
  EXPECT_EQ(gathers, expected);
  ASSERT_EQ(program->prologue.size(), 4U);
  for (int i = 0; i < 2; ++i) {
    const Op& issued = program->prologue[static_cast<std::size_t>(i)];
    const Op& waited = program->prologue[static_cast<std::size_t>(i + 2)];
    EXPECT_EQ(program->units[static_cast<std::size_t>(issued.unit)].name,
              i == 0 ? "embedding" : "layers.0");
    EXPECT_EQ(issued.kind, OpKind::kAllGather);
    EXPECT_EQ(waited.kind, OpKind::kWait);
    EXPECT_EQ(waited.ticket, issued.ticket);
  }
  EXPECT_EQ(program->ops.back().kind, OpKind::kWait);
  EXPECT_EQ(program->ops.back().ticket, program->prologue.back().ticket);
}

TEST(StepOverlap, WhereNothingIsGatheredNothingComesBefore) {
  for (const std::int64_t zero : {1, 2, 3}) {
    const spec::LayoutSpec layout{.dp = zero == 3 ? 2 : 1, .fsdp = zero == 3 ? 1 : 2, .zero = zero};
    const auto program = build({.vocab = 64,
                                .dim = 24,
                                .layers = 2,
                                .heads = 4,
                                .kv_heads = 4,
                                .head_dim = 6,
                                .ffn = 40,
                                .context = 16},
                               {.layout = *layout_of(layout, 0), .sequence = 16});
    ASSERT_TRUE(program.has_value());
    EXPECT_TRUE(program->prologue.empty());
  }
}

}  // namespace
}  // namespace assay::step
