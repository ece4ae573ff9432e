// Parameter counts: the published figures, and an independent count for random shapes.
#include "spec/parameters.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>

#include "spec/load.h"

namespace assay::spec {
namespace {

Parameters parameters_of(const std::string& preset) {
  const auto loaded = load(preset);
  EXPECT_TRUE(loaded.has_value()) << loaded.error().line();
  return count_parameters(std::get<ModelSpec>(loaded->spec)).value();
}

struct Figure {
  const char* preset;
  std::int64_t total;
};

class PublishedCount : public ::testing::TestWithParam<Figure> {};

TEST_P(PublishedCount, IsExact) {
  const Parameters parameters = parameters_of(GetParam().preset);
  EXPECT_EQ(parameters.total, GetParam().total);
  std::int64_t sum = 0;
  for (const ParameterGroup& group : parameters.groups) sum += group.parameters();
  EXPECT_EQ(sum, parameters.total);
}

// Llama, GPT-2, Mixtral, Qwen, DeepSeek: the models' published checkpoints. nanochat d26: the
// published post; the other depths: C = 64 d rounded up to 128, V = 32768, ceil(d/2) value
// embeddings, worked out by hand.
INSTANTIATE_TEST_SUITE_P(
    Presets, PublishedCount,
    ::testing::Values(Figure{"llama3-8b", 8'030'261'248}, Figure{"llama3-13b", 14'840'386'560},
                      Figure{"llama3-70b", 70'553'706'496}, Figure{"moe-9b", 9'233'205'248},
                      Figure{"gpt2-124m", 124'439'808}, Figure{"nanochat-d26", 1'681'790'292},
                      Figure{"nanochat-d24", 1'384'124'976}, Figure{"nanochat-d20", 896'535'720},
                      Figure{"nanochat-d15", 524'290'078}, Figure{"nanochat-d12", 286'262'424},
                      Figure{"tiny", 853'120}, Figure{"mixtral-8x7b", 46'702'792'704},
                      Figure{"qwen3-30b-a3b", 30'532'122'624},
                      Figure{"deepseek-v3", 671'026'419'200},
                      Figure{"deepseek-v2-lite", 15'706'484'224},
                      Figure{"deepseek-moe-16b", 16'375'728'128},
                      // And a bias for each of 64 experts in 27 layers.
                      Figure{"deepseek-moe-16b-sigmoid", 16'375'728'128 + 27 * 64}),
    [](const auto& param) {
      std::string name = param.param.preset;
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

TEST(Parameters, NanochatGroupsAreThePublishedOnes) {
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> groups;  // tensors, elements each
  const Parameters parameters = parameters_of("nanochat-d26");
  for (const ParameterGroup& group : parameters.groups) {
    groups[group.name] = {group.count, group.elements_each()};
  }
  using Pair = std::pair<std::int64_t, std::int64_t>;
  EXPECT_EQ(groups["head"], Pair(1, 54'525'952));
  EXPECT_EQ(groups["embedding"], Pair(1, 54'525'952));
  EXPECT_EQ(groups["value_embeddings"], Pair(13, 54'525'952));
  EXPECT_EQ(groups["residual_lambdas"], Pair(1, 26));
  EXPECT_EQ(groups["embedding_lambdas"], Pair(1, 26));
  EXPECT_EQ(groups["value_gate"], Pair(13, 416));
  for (const char* name : {"attn_q", "attn_k", "attn_v", "attn_o"}) {
    EXPECT_EQ(groups[name], Pair(26, 2'768'896)) << name;
  }
  EXPECT_EQ(groups["mlp_up"], Pair(26, 11'075'584));
  EXPECT_EQ(groups["mlp_down"], Pair(26, 11'075'584));
  EXPECT_EQ(groups.size(), 12U);
  // What the post calls scaling parameters: 8.5 tokens for each make 14,889 steps of 524,288.
  EXPECT_EQ(parameters.matmul, 918'426'912);
}

// 37 billion of 671, and 2.4 of 15.7 without the embedding, as published.
TEST(Parameters, OfLatentAttentionThatATokenUses) {
  EXPECT_NEAR(static_cast<double>(parameters_of("deepseek-v3").active), 37.5e9, 0.2e9);
  EXPECT_NEAR(static_cast<double>(parameters_of("deepseek-v2-lite").active), 2.66e9, 0.03e9);
}

TEST(Parameters, ATokenUsesTwoOfEightExperts) {
  const Parameters parameters = parameters_of("moe-9b");
  const std::int64_t expert = 3LL * 2048 * 7168;
  EXPECT_EQ(parameters.total - parameters.active, 24LL * 6 * expert);
}

TEST(Parameters, ATiedHeadMultipliesButIsCountedOnce) {
  const Parameters parameters = parameters_of("gpt2-124m");
  const std::int64_t blocks = 12LL * (4 * 768 * 768 + 2 * 768 * 3072);
  EXPECT_EQ(parameters.matmul, blocks + 50257LL * 768);
}

TEST(Parameters, CountsThatDoNotFitAreRefused) {
  ModelSpec model{.vocab = 100'000'000,
                  .dim = 1'000'000,
                  .layers = 100'000,
                  .heads = 1,
                  .kv_heads = 1,
                  .head_dim = 100'000,
                  .ffn = 10'000'000,
                  .context = 1,
                  .experts = 100'000,
                  .experts_per_token = 1};
  EXPECT_FALSE(count_parameters(model).has_value());
}

// Builds the model layer by layer, as a program that allocates it would, and adds up.
std::int64_t count_by_building(const ModelSpec& m) {
  std::int64_t total = m.vocab * m.dim;
  if (m.positions == Positions::kLearned) total += m.context * m.dim;
  if (m.residual_lambdas) total += 2 * m.layers;
  const auto linear = [&](std::int64_t in, std::int64_t out) { return in * out + m.bias * out; };
  const std::int64_t norm = m.norm == Norm::kRmsNorm     ? m.dim
                            : m.norm == Norm::kLayerNorm ? 2 * m.dim
                                                         : 0;
  for (std::int64_t layer = 1; layer <= m.layers; ++layer) {
    total += norm + linear(m.dim, m.heads * m.head_dim) +
             2 * linear(m.dim, m.kv_heads * m.head_dim) + linear(m.heads * m.head_dim, m.dim);
    if (m.qk_norm == QkNorm::kLearned) total += 2 * m.head_dim;
    if (m.value_embeddings && layer % 2 == 1) {
      total += m.vocab * m.kv_heads * m.head_dim + 32 * m.kv_heads;
    }
    const auto mlp = [&](std::int64_t width, bool bias) {
      const std::int64_t matrices = (m.mlp == Mlp::kSwiglu ? 3 : 2) * m.dim * width;
      return matrices + (bias ? (m.mlp == Mlp::kSwiglu ? 2 : 1) * width + m.dim : 0);
    };
    const bool mixture = m.experts > 0 && layer > m.dense_layers && layer % m.moe_every == 0;
    total += norm;
    if (!mixture) {
      total += mlp(m.ffn, m.bias);
      continue;
    }
    const std::int64_t width = m.expert_ffn > 0 ? m.expert_ffn : m.ffn;
    total += m.dim * m.experts + m.experts * mlp(width, m.bias);
    if (m.shared_ffn > 0) total += mlp(m.shared_ffn, false);
    if (m.router == Router::kSigmoid) total += m.experts;
  }
  return total + norm + (m.tied ? 0 : m.vocab * m.dim);
}

RC_GTEST_PROP(ParametersProperty, AgreeWithBuildingTheModel, ()) {
  const auto size = [](int low, int high) {
    return static_cast<std::int64_t>(*rc::gen::inRange(low, high));
  };
  ModelSpec m{.vocab = size(2, 300),
              .dim = size(1, 65),
              .layers = size(1, 9),
              .heads = size(1, 9),
              .kv_heads = size(1, 5),
              .head_dim = size(1, 17),
              .ffn = size(1, 99),
              .context = size(1, 65)};
  m.norm = *rc::gen::element(Norm::kRmsNorm, Norm::kRmsNormPlain, Norm::kLayerNorm);
  m.qk_norm = *rc::gen::element(QkNorm::kNone, QkNorm::kPlain, QkNorm::kLearned);
  m.mlp = *rc::gen::element(Mlp::kSwiglu, Mlp::kGelu, Mlp::kRelu2);
  m.positions = *rc::gen::element(Positions::kRope, Positions::kLearned);
  m.bias = *rc::gen::arbitrary<bool>();
  m.tied = *rc::gen::arbitrary<bool>();
  m.value_embeddings = *rc::gen::arbitrary<bool>();
  m.residual_lambdas = *rc::gen::arbitrary<bool>();
  m.experts = size(0, 5);
  m.experts_per_token = m.experts > 0 ? 1 : 0;
  m.moe_every = size(1, 4);
  m.dense_layers = size(0, 4);
  m.expert_ffn = size(0, 9);
  m.shared_ffn = size(0, 9);
  m.router = *rc::gen::element(Router::kSoftmax, Router::kSigmoid);
  const auto counted = count_parameters(m);
  RC_ASSERT(counted.has_value());
  RC_ASSERT(counted->total == count_by_building(m));
  RC_ASSERT(counted->active <= counted->total);
}

TEST(FlopsPerToken, AreThePublishedOnes) {
  ModelSpec m;
  m.vocab = 128256;
  m.dim = 4096;
  m.layers = 32;
  m.heads = 32;
  m.kv_heads = 8;
  m.head_dim = 128;
  m.ffn = 14336;
  m.context = 8192;
  const FlopsPerToken flops = flops_per_token(m, 4096);
  EXPECT_NEAR(flops.with_embedding / 1e9, 54.62, 0.01);
  EXPECT_NEAR(flops.without_embedding / 1e9, 51.47, 0.01);
}

}  // namespace
}  // namespace assay::spec
