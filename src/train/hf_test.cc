#include "train/hf_names.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <map>

#include "spec/testing/model_shapes.h"
#include "step/parameter.h"
#include "train/float_bits.h"

namespace assay::train {
namespace {

spec::ModelSpec llama_shape() {
  return {.vocab = 64,
          .dim = 32,
          .layers = 2,
          .heads = 4,
          .kv_heads = 2,
          .head_dim = 8,
          .ffn = 48,
          .context = 16,
          .rope_theta = 500000};
}

spec::ModelSpec gpt2_shape() {
  spec::ModelSpec m = spec::testing::gpt2_shape(llama_shape());
  m.rope_theta = 10000;
  return m;
}

spec::ModelSpec mixtral_shape() {
  spec::ModelSpec m = llama_shape();
  m.experts = 4;
  m.experts_per_token = 2;
  return m;
}

spec::ModelSpec qwen_mixture_shape() {
  spec::ModelSpec m = spec::testing::qwen_shape(mixtral_shape());
  m.layers = 5;
  m.moe_every = 2;
  m.dense_layers = 2;
  m.expert_ffn = 16;
  m.normalise_router = false;
  return m;
}

TEST(HfNames, EveryRowOfEveryParameterIsNamedOnce) {
  const spec::ModelSpec qwen = spec::testing::qwen_shape(llama_shape());
  for (const spec::ModelSpec& model :
       {llama_shape(), qwen, gpt2_shape(), mixtral_shape(), qwen_mixture_shape()}) {
    const auto tensors = hf_tensors(model);
    ASSERT_TRUE(tensors.has_value());
    std::map<std::string, std::int64_t> rows;
    for (const HfTensor& tensor : *tensors) {
      EXPECT_EQ(rows[tensor.parameter], tensor.first) << tensor.name;
      rows[tensor.parameter] += tensor.count;
    }
    const auto parameters = step::list_parameters(model, spec::Optimizer::kAdamw);
    ASSERT_EQ(rows.size(), parameters.size());
    for (const step::Parameter& p : parameters) EXPECT_EQ(rows[p.name], p.rows) << p.name;
  }
}

TEST(HfNames, AConfigDescribesTheModelItWasMadeOf) {
  spec::ModelSpec qwen = llama_shape();
  qwen.qk_norm = spec::QkNorm::kLearned;
  for (const spec::ModelSpec& model :
       {llama_shape(), qwen, gpt2_shape(), mixtral_shape(), qwen_mixture_shape()}) {
    const auto config = hf_config(model, "float32");
    ASSERT_TRUE(config.has_value());
    const auto back = model_from_hf(*config, "config.json");
    ASSERT_TRUE(back.has_value()) << back.error().line();
    EXPECT_EQ(back->dim, model.dim);
    EXPECT_EQ(back->kv_heads, model.kv_heads);
    EXPECT_EQ(back->ffn, model.ffn);
    EXPECT_EQ(back->qk_norm, model.qk_norm);
    EXPECT_EQ(back->norm, model.norm);
    EXPECT_EQ(back->tied, model.tied);
    EXPECT_EQ(back->rope_theta, model.rope_theta);
    EXPECT_EQ(back->experts, model.experts);
    EXPECT_EQ(back->experts_per_token, model.experts_per_token);
    EXPECT_EQ(back->expert_width(), model.expert_width());
    EXPECT_EQ(back->moe_every, model.moe_every);
    EXPECT_EQ(back->dense_layers, model.dense_layers);
    EXPECT_EQ(back->normalise_router, model.normalise_router);
  }
  EXPECT_FALSE(model_from_hf({{"model_type", "bert"}}, "c").has_value());
  EXPECT_FALSE(model_from_hf({{"model_type", "llama"}}, "c").has_value());
  spec::ModelSpec strange = llama_shape();
  strange.mlp = spec::Mlp::kRelu2;
  EXPECT_FALSE(hf_tensors(strange).has_value());
  spec::ModelSpec sigmoid = mixtral_shape();
  sigmoid.router = spec::Router::kSigmoid;
  EXPECT_FALSE(hf_tensors(sigmoid).has_value());
  base::Json without = *hf_config(mixtral_shape(), "float32");
  without["num_local_experts"] = 0;
  EXPECT_FALSE(model_from_hf(without, "c").has_value());
}

TEST(SplitMaster, IsExactAndItsHighHalfIsTheNearestBf16) {
  std::uint32_t word = 12345;
  for (int i = 0; i < 200000; ++i) {
    word = word * 1664525U + 1013904223U;
    const auto value = std::bit_cast<float>(word);
    if (!std::isfinite(value) || (word & 0x7F000000U) == 0x7F000000U) continue;
    const SplitMaster pair = split_master(value);
    ASSERT_EQ(std::bit_cast<std::uint32_t>(join_master(pair)), word);
    const float high = from_bf16(pair.high);
    const float error = std::fabs(high - value);
    const float step = std::fabs(from_bf16(static_cast<std::uint16_t>(pair.high ^ 1U)) - high);
    ASSERT_LE(error, step);
  }
}

}  // namespace
}  // namespace assay::train
