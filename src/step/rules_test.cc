// For each rule an example that breaks only that rule; and that the rules are sufficient: what they
// allow can be built.
#include "step/rules.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <functional>
#include <string>

#include "step/testing/drawn_jobs.h"

namespace assay::step {
namespace {

struct Asked {
  spec::ModelSpec model{.vocab = 128,
                        .dim = 64,
                        .layers = 4,
                        .heads = 4,
                        .kv_heads = 2,
                        .head_dim = 16,
                        .ffn = 96,
                        .context = 32};
  Choices choices{.sequence = 32, .micro_batch = 1, .accumulate = 4};
};

using Change = std::function<void(Asked&)>;

std::string refused(const Change& change, bool gpu = false) {
  Asked asked;
  EXPECT_FALSE(broken_rule(asked.model, asked.choices));
  EXPECT_FALSE(broken_gpu_rule(asked.model, asked.choices));
  change(asked);
  const auto checked =
      gpu ? check_for_gpus(asked.model, asked.choices) : check(asked.model, asked.choices);
  if (checked) return "";
  if (!gpu) {
    EXPECT_EQ(build(asked.model, asked.choices).error().line(), checked.error().line());
  }
  EXPECT_EQ(checked.error().code, base::ExitCode::kUsage);
  EXPECT_FALSE(checked.error().hint.empty());
  return checked.error().where + ": " + checked.error().what;
}

TEST(Rules, NameTheKeyOfWhatHasNoProgram) {
  const auto mixture = [](Asked& a) { a.model.experts = a.model.experts_per_token = 4; };
  EXPECT_EQ(refused(mixture), "");
  EXPECT_EQ(refused([&](Asked& a) { mixture(a), a.model.bias = true; }),
            "model.bias: experts with biases cannot be trained yet");
  EXPECT_EQ(refused([&](Asked& a) { mixture(a), a.model.router_groups = 2; }),
            "model.router_groups: routers that choose groups of experts cannot be trained yet");
  EXPECT_EQ(refused([&](Asked& a) {
              mixture(a);
              a.choices.optimizer = spec::Optimizer::kMuon;
            }),
            "train.optimizer: Muon cannot update the matrices of experts yet");
  EXPECT_EQ(refused([](Asked& a) { a.model.value_embeddings = true; }),
            "model.value_embeddings: value embeddings cannot be trained yet");
  EXPECT_EQ(refused([](Asked& a) { a.model.residual_lambdas = true; }),
            "model.residual_lambdas: residual lambdas cannot be trained yet");
  EXPECT_EQ(refused([](Asked& a) {
              a.choices.layout.pipeline.ranks = 2;
              a.choices.layout.chunks = 2;
              a.choices.accumulate = 3;
            }),
            "batch.accumulate: 3 micro-batches cannot be interleaved over 2 stages");
  EXPECT_EQ(
      refused([](Asked& a) {
        a.choices.layout.context.ranks = 2;
        a.choices.sequence = 30;
      }),
      "batch.sequence: 30 tokens cannot be cut into two pieces for each of layout.cp=2 ranks");
  EXPECT_EQ(refused([](Asked& a) {
              a.choices.layout.context.ranks = 2;
              a.choices.document_mask = true;
            }),
            "layout.cp: documents cannot be masked with context parallelism yet");
  EXPECT_EQ(refused([](Asked& a) { a.choices.document_mask = true; }), "");
  EXPECT_EQ(
      refused([](Asked& a) {
        a.choices.layout.tensor.ranks = 2;
        a.choices.optimizer = spec::Optimizer::kMuon;
      }),
      "layout.tp: Muon updates whole matrices, but tensor-parallel ranks have only parts of them");
  EXPECT_EQ(refused([](Asked& a) { a.choices.layout.tensor.ranks = 3; }),
            "layout.tp: model.heads 4 cannot be divided by 3 ranks");
  EXPECT_EQ(refused([](Asked& a) { a.choices.layout.tensor.ranks = 4; }),
            "layout.tp: model.kv_heads 2 cannot be divided by 4 ranks");
  EXPECT_EQ(refused([](Asked& a) {
              a.choices.layout.tensor.ranks = 2;
              a.model.ffn = 97;
            }),
            "layout.tp: model.ffn 97 cannot be divided by 2 ranks");
  EXPECT_EQ(refused([](Asked& a) {
              a.choices.layout.tensor.ranks = 2;
              a.choices.sequence = 15;
            }),
            "layout.tp: 15 tokens of a micro-batch cannot be divided by 2 ranks");
  EXPECT_EQ(refused([](Asked& a) {
              a.choices.layout.shard.ranks = 2;
              a.choices.optimizer = spec::Optimizer::kMuon;
            }),
            "layout.zero: Muon updates whole matrices, but zero 3 keeps only parts of them");
}

TEST(Rules, OfGpusAreAboutWidths) {
  const auto on_gpu = [](const Change& change) { return refused(change, true); };
  const auto in_fp8 = [](const Change& change) {
    return refused(
        [&](Asked& a) {
          a.choices.numerics.fp8_blocks = true;
          change(a);
        },
        true);
  };
  EXPECT_EQ(on_gpu([](Asked& a) { a.model.dim = 60; }), "model.dim: 60 cannot be trained on a GPU");
  EXPECT_EQ(on_gpu([](Asked& a) { a.model.head_dim = 256; }),
            "model.head_dim: 256 cannot be trained on a GPU");
  EXPECT_EQ(on_gpu([](Asked& a) { a.model.ffn = 100; }),
            "model.ffn: 100 cannot be trained on a GPU");
  const Change cut_unevenly = [](Asked& a) {
    a.model.ffn = 104;
    a.choices.layout.tensor.ranks = 2;
  };
  EXPECT_EQ(on_gpu(cut_unevenly), "layout.tp: 2 ranks of model.ffn 104 cannot be trained on a GPU");
  EXPECT_EQ(refused(cut_unevenly), "");
  const auto mixture = [](Asked& a) { a.model.experts = 4, a.model.experts_per_token = 2; };
  EXPECT_EQ(on_gpu(mixture), "");
  EXPECT_EQ(in_fp8(mixture), "");
  EXPECT_EQ(on_gpu([&](Asked& a) { mixture(a), a.model.experts = 513; }),
            "model.experts: 513 experts cannot be trained on a GPU");
  EXPECT_EQ(on_gpu([&](Asked& a) { mixture(a), a.model.expert_ffn = 20; }),
            "model.expert_ffn: 20 cannot be trained on a GPU");
  EXPECT_EQ(on_gpu([&](Asked& a) { mixture(a), a.model.shared_ffn = 12; }),
            "model.shared_ffn: 12 cannot be trained on a GPU");
  EXPECT_EQ(on_gpu([&](Asked& a) {
              mixture(a);
              a.model.expert_ffn = 24;
              a.choices.layout.tensor.ranks = 2;
            }),
            "layout.tp: 2 ranks of model.expert_ffn 24 cannot be trained on a GPU");
  EXPECT_EQ(in_fp8([&](Asked& a) { mixture(a), a.model.expert_ffn = 24; }),
            "model.expert_ffn: 24 cannot be trained on a GPU");
  EXPECT_EQ(in_fp8([&](Asked& a) { mixture(a), a.model.shared_ffn = 24; }),
            "model.shared_ffn: 24 cannot be trained on a GPU");
  EXPECT_EQ(in_fp8([](Asked& a) { a.model.head_dim = 24; }),
            "model.head_dim: 24 cannot be trained in fp8");
  EXPECT_EQ(in_fp8([](Asked& a) { a.choices.sequence = 24; }),
            "batch.sequence: 24 cannot be trained in fp8");
  EXPECT_EQ(in_fp8([](Asked& a) { a.choices.layout.tensor.ranks = 2; }), "");
}

RC_GTEST_PROP(RulesProperty, WhatTheyAllowIsBuilt, ()) {
  spec::JobSpec job = testing::drawn_job();
  job.batch.sequence = *rc::gen::element(12, 15, 16, 30);
  job.model.context = job.batch.sequence;
  job.layout.tp = *rc::gen::element(1, 1, 2, 4);
  job.layout.cp = *rc::gen::element(1, 1, 2, 3);
  job.train.optimizer = *rc::gen::element(spec::Optimizer::kAdamw, spec::Optimizer::kMuon);
  Choices choices = choices_of(job);
  choices.layout = *layout_of(job.layout, 0);
  RC_ASSERT(build(job.model, choices).has_value() == check(job.model, choices).has_value());
}

}  // namespace
}  // namespace assay::step
