#include "step/program.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <set>

#include "spec/load.h"
#include "spec/parameters.h"
#include "spec/testing/model_shapes.h"
#include "step/memory_plan.h"
#include "step/parameter.h"
#include "step/rules.h"

namespace assay::step {
namespace {

spec::ModelSpec small() {
  return {.vocab = 128,
          .dim = 32,
          .layers = 3,
          .heads = 4,
          .kv_heads = 2,
          .head_dim = 8,
          .ffn = 48,
          .context = 16};
}

Program built(const spec::ModelSpec& model, Choices choices) {
  auto program = build(model, choices);
  EXPECT_TRUE(program.has_value());
  return *std::move(program);
}

Choices batch(spec::Recompute recompute = spec::Recompute::kNone) {
  return {.recompute = recompute, .sequence = 16, .micro_batch = 2, .accumulate = 2};
}

TEST(StepParameters, AreTheSpecsParameters) {
  for (const bool tied : {false, true}) {
    for (const auto norm :
         {spec::Norm::kRmsNorm, spec::Norm::kLayerNorm, spec::Norm::kRmsNormPlain}) {
      for (const auto mlp : {spec::Mlp::kSwiglu, spec::Mlp::kGelu}) {
        spec::ModelSpec m = small();
        m.tied = tied;
        m.norm = norm;
        m.mlp = mlp;
        m.bias = mlp == spec::Mlp::kGelu;
        m.qk_norm = tied ? spec::QkNorm::kLearned : spec::QkNorm::kNone;
        if (m.bias) m.positions = spec::Positions::kLearned;
        std::int64_t total = 0;
        for (const Parameter& p : list_parameters(m, spec::Optimizer::kMuon)) {
          total += p.elements();
        }
        EXPECT_EQ(total, spec::parameters_of(m).total);
      }
    }
  }
}

TEST(StepParameters, BeginWithTheScalesOfTheJob) {
  spec::JobSpec job;
  job.model = {.vocab = 64, .dim = 32, .layers = 8, .heads = 2, .kv_heads = 2, .head_dim = 16};
  job.model.ffn = 64;
  job.batch.sequence = 16;
  const auto scales = [&] {
    std::map<std::string, double> all;
    const auto program = build(job.model, choices_of(job));
    EXPECT_TRUE(program.has_value());
    for (const Parameter& p : program->parameters) all[p.name] = p.init_std;
    for (const Parameter& p : program->model_parameters) EXPECT_EQ(all[p.name], p.init_std);
    return all;
  };
  auto usual = scales();
  EXPECT_EQ(usual["embedding"], 0.02);
  EXPECT_EQ(usual["head"], 0.02);
  EXPECT_EQ(usual["layers.7.qkv"], 0.02);
  EXPECT_EQ(usual["layers.7.down"], 0.02 / std::sqrt(16.0));
  job.train.init_std = 0.01;
  job.train.head_init_std = 0.001;
  auto other = scales();
  EXPECT_EQ(other["embedding"], 0.01);
  EXPECT_EQ(other["head"], 0.001);
  EXPECT_DOUBLE_EQ(other["layers.0.attention_out"], 0.01 / std::sqrt(16.0));
  EXPECT_DOUBLE_EQ(other["layers.0.gate_up"], 0.01);
}

TEST(StepProgram, CountsTheFlopsOfTheLiterature) {
  // 6 flops per matrix parameter and token, and attention's: without recomputation nothing else.
  const spec::ModelSpec m = small();
  const Program p = built(m, batch());
  const auto matmul = static_cast<double>(spec::parameters_of(m).matmul);
  const auto tokens = static_cast<double>(p.step_tokens());
  const double attention = 7.0 * tokens * 16 * 32 * 3;  // (2 + 5) passes, causal, S q_dim L
  EXPECT_DOUBLE_EQ(p.flops(), 6 * matmul * tokens + attention);
}

TEST(StepProgram, KeepsWhatThePolicyRequires) {
  // Bytes per token and layer of Llama 3 8B in bf16, and the same figures by hand.
  const auto loaded = spec::load("llama3-8b");
  ASSERT_TRUE(loaded.has_value());
  const auto activations = [&](spec::Recompute policy, std::int64_t layers) {
    spec::ModelSpec m = std::get<spec::ModelSpec>(loaded->spec);
    m.layers = layers;
    Choices c{.numerics = numerics_of(spec::Precision::kBf16), .recompute = policy};
    c.sequence = 4096;
    c.head_rows = 128;
    return plan_memory(built(m, c)).of(Storage::kActivations);
  };
  const std::map<spec::Recompute, std::int64_t> expected{{spec::Recompute::kNone, 139392},
                                                         {spec::Recompute::kCheap, 94336},
                                                         {spec::Recompute::kFfn, 36992},
                                                         {spec::Recompute::kFull, 8192}};
  for (const auto& [policy, bytes] : expected) {
    const std::int64_t grown = activations(policy, 12) - activations(policy, 8);
    EXPECT_EQ(grown, 4 * 4096 * bytes) << static_cast<int>(policy);
  }
}

void expect_same_in_fp8(const spec::ModelSpec& model, spec::Recompute policy) {
  Choices choices = batch(policy);
  choices.numerics = numerics_of(spec::Precision::kBf16);
  const Program exact = built(model, choices);
  choices.numerics = numerics_of(spec::Precision::kFp8);
  const Program rough = built(model, choices);
  EXPECT_EQ(rough.flops(), exact.flops());
  std::vector<const Op*> products;
  for (const Op& op : rough.ops) {
    if (op.kind != OpKind::kScale && op.kind != OpKind::kQuantise) products.push_back(&op);
  }
  ASSERT_EQ(products.size(), exact.ops.size());
  for (std::size_t i = 0; i < products.size(); ++i) {
    const Op& op = *products[i];
    const bool by_expert = op.kind == OpKind::kGroupedMatmul;
    EXPECT_EQ(op.kind, exact.ops[i].kind);
    EXPECT_EQ(op.out.front().elements(), exact.ops[i].out.front().elements());
    EXPECT_EQ(op.scaled, (op.kind == OpKind::kMatmul || by_expert) && op.layer != kNoLayer &&
                             op.part != ModelPart::kRouter);
    if (!op.scaled) continue;
    const std::int64_t experts = by_expert ? model.experts : 1;
    if (by_expert && op.transpose_a) {  // weights of experts from columns of both
      EXPECT_EQ(op.in[0].cols, op.in[1].cols);
      EXPECT_GE(op.in[0].cols, exact.ops[i].in[0].rows);
      EXPECT_EQ(op.in[0].cols % kFp8Alignment, 0);
      EXPECT_EQ(op.out[0].rows, experts * op.in[0].rows);
      EXPECT_EQ(op.out[0].cols, op.in[1].rows);
    } else if (by_expert && !op.transpose_b) {  // weights lie side by side
      EXPECT_EQ(experts * op.in[0].cols, op.in[1].cols);
      EXPECT_EQ(op.out[0].cols, op.in[1].rows);
    } else {
      EXPECT_FALSE(op.transpose_a);
      EXPECT_TRUE(op.transpose_b);
      EXPECT_EQ(op.in[0].cols, op.in[1].cols);
      EXPECT_EQ(op.out[0].rows, op.in[0].rows);
      EXPECT_EQ(experts * op.out[0].cols, op.in[1].rows);
    }
  }
}

TEST(StepProgram, InFp8MultipliesTheSameWithBothOperandsAlongTheSum) {
  spec::ModelSpec mixture = small();
  mixture.experts = 5;
  mixture.experts_per_token = 2;
  mixture.expert_ffn = 32;
  mixture.shared_ffn = 16;
  for (const auto policy : {spec::Recompute::kNone, spec::Recompute::kCheap, spec::Recompute::kFfn,
                            spec::Recompute::kFull}) {
    expect_same_in_fp8(small(), policy);
    expect_same_in_fp8(mixture, policy);
  }
}

// Executes two steps op by op: every reader of a buffer must find what its last writer left. An
// exchange writes from its issue on, and its result is read after the wait.
void expect_places_hold(const Program& p) {
  const MemoryPlan plan = plan_memory(p);
  std::map<std::int64_t, std::pair<BufferId, std::int64_t>> memory;  // start -> owner, end
  const auto check = [&](const Op& op, const View& view) {
    const Buffer& buffer = p.buffers[static_cast<std::size_t>(view.buffer)];
    if (buffer.storage != Storage::kActivations) return;
    const auto at = memory.find(plan.offset[static_cast<std::size_t>(view.buffer)]);
    ASSERT_TRUE(at != memory.end() && at->second.first == view.buffer)
        << to_text(op, p) << " reads " << buffer.name << ", which is gone";
  };
  std::vector<Op> steps = p.prologue;
  for (int step = 0; step < 2; ++step) steps.insert(steps.end(), p.ops.begin(), p.ops.end());
  for (const Op& op : steps) {
    for (const View& in : op.in) ASSERT_NO_FATAL_FAILURE(check(op, in));
    for (const View& out : op.out) {
      if (op.kind == OpKind::kWait) {
        ASSERT_NO_FATAL_FAILURE(check(op, out));
        continue;
      }
      const Buffer& buffer = p.buffers[static_cast<std::size_t>(out.buffer)];
      const std::int64_t begin = plan.offset[static_cast<std::size_t>(out.buffer)];
      const std::int64_t end = begin + buffer.bytes();
      ASSERT_LE(end, plan.bytes);
      std::erase_if(memory, [&](const auto& entry) {
        return entry.second.first != out.buffer && entry.first < end && begin < entry.second.second;
      });
      memory[begin] = {out.buffer, end};
    }
  }
}

TEST(MemoryPlan, NeverGivesOnePlaceToTwoLivingBuffers) {
  constexpr spec::Recompute kPolicies[] = {spec::Recompute::kNone, spec::Recompute::kCheap,
                                           spec::Recompute::kFfn, spec::Recompute::kFull};
  for (int way = 0; way < 8; ++way) {
    Choices choices = batch(kPolicies[way % 4]);
    if (way >= 4) choices.numerics = numerics_of(spec::Precision::kFp8);
    expect_places_hold(built(small(), choices));
  }
}

TEST(MemoryPlan, NeverGivesOnePlaceToTwoLivingBuffersOfAnyLayout) {
  for (const spec::LayoutSpec& spec : {
           spec::LayoutSpec{.dp = 1, .fsdp = 3},
           {.dp = 2, .fsdp = 2, .zero = 3, .unit = spec::ShardUnit::kModule},
           {.dp = 1, .pp = 3},
           {.dp = 1, .fsdp = 2, .pp = 2},
           {.dp = 1, .pp = 2, .pp_schedule = spec::PipelineSchedule::kGpipe},
           {.dp = 1, .pp = 2, .pp_schedule = spec::PipelineSchedule::kInterleaved, .pp_chunks = 2},
           {.dp = 1, .pp = 2, .pp_schedule = spec::PipelineSchedule::kZbH1},
           {.dp = 1, .fsdp = 2, .pp = 3, .pp_schedule = spec::PipelineSchedule::kZbH1},
           {.dp = 1, .pp = 4, .pp_schedule = spec::PipelineSchedule::kZbH1},
       }) {
    spec::ModelSpec model = small();
    model.layers = 5;
    for (std::int64_t rank = 0; rank < spec.dp * spec.inner_ranks(); ++rank) {
      constexpr spec::Recompute kPolicies[] = {spec::Recompute::kFfn, spec::Recompute::kNone,
                                               spec::Recompute::kCheap, spec::Recompute::kFull};
      Choices choices = batch(kPolicies[rank % 4]);
      if (rank % 2 == 1) choices.numerics = numerics_of(spec::Precision::kFp8);
      choices.accumulate = 40;  // more than are in flight at once, in any schedule but GPipe's
      choices.layout = *layout_of(spec, rank);
      SCOPED_TRACE(rank);
      expect_places_hold(built(model, choices));
    }
  }
}

TEST(StepProgram, OfEveryPurposeReadsAndWritesWhatThereIs) {
  std::vector<spec::ModelSpec> models = {small()};
  for (const auto& mixture : spec::testing::mixture_shapes(small()))
    models.push_back(mixture.model);
  for (const spec::ModelSpec& model : models) {
    for (const Purpose purpose : {Purpose::kTrain, Purpose::kLoss, Purpose::kLogits}) {
      Choices choices = batch();
      choices.purpose = purpose;
      const Program p = built(model, choices);
      for (const Op& op : p.ops) {
        for (const auto* views : {&op.in, &op.out}) {
          for (const View& view : *views) {
            EXPECT_GE(view.buffer, 0);
            EXPECT_LT(view.buffer, std::ssize(p.buffers));
          }
        }
      }
      EXPECT_GT(plan_memory(p).bytes, 0);
    }
  }
}

// A single rank writes the first micro-batch's gradients where their sums are kept, and adds those
// of the others, one after the other.
TEST(StepProgram, FoldsTheGradientsOfMicroBatches) {
  for (const bool tied : {false, true}) {
    spec::ModelSpec m = small();
    m.tied = tied;
    m.qk_norm = spec::QkNorm::kLearned;
    Choices choices = batch(spec::Recompute::kCheap);
    choices.accumulate = 3;
    const Program p = built(m, choices);
    std::map<BufferId, std::vector<std::int32_t>> folded;
    std::map<std::pair<BufferId, std::int64_t>, int> written;
    for (const Op& op : p.ops) {
      for (std::size_t i = 0; i < op.out.size(); ++i) {
        const View& out = op.out[i];
        if (p.buffers[static_cast<std::size_t>(out.buffer)].storage != Storage::kGradients)
          continue;
        if (op.kind == OpKind::kFold) {
          EXPECT_TRUE(op.adds_to(0));
          if (op.phase == Phase::kBackward) folded[out.buffer].push_back(op.micro);
          continue;
        }
        EXPECT_EQ(op.micro, 0) << to_text(op, p);
        int& times = written[{out.buffer, out.offset}];
        EXPECT_EQ(op.adds_to(i), times++ > 0) << to_text(op, p);
      }
    }
    EXPECT_EQ(written.size(), p.parameters.size() + (tied ? 1 : 0));
    EXPECT_EQ(folded.size(), p.units.size() + (tied ? 1 : 0));
    for (const auto& [buffer, micros] : folded) {
      EXPECT_EQ(micros, (std::vector<std::int32_t>{1, 2}));
    }
  }
}

TEST(StepProgram, RefusesWhatCannotBeTrained) {
  spec::ModelSpec m = small();
  m.experts = 4;
  m.experts_per_token = 2;
  EXPECT_TRUE(build(m, batch()).has_value());
  Choices muon = batch();
  muon.optimizer = spec::Optimizer::kMuon;
  const auto refused = build(m, muon);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().where, "train.optimizer");
  m.bias = true;
  const auto biased = build(m, batch());
  ASSERT_FALSE(biased.has_value());
  EXPECT_EQ(biased.error().where, "model.bias");
}

}  // namespace
}  // namespace assay::step
