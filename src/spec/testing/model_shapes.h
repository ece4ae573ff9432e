// The architectures that can be trained, each derived from a given Llama-like model of any size.
#pragma once

#include <vector>

#include "spec/model.h"

namespace assay::spec::testing {

inline ModelSpec qwen_shape(ModelSpec llama) {
  llama.qk_norm = QkNorm::kLearned;
  llama.tied = true;
  return llama;
}

inline ModelSpec nanochat_shape(ModelSpec llama) {
  llama.qk_norm = QkNorm::kPlain;
  llama.norm = Norm::kRmsNormPlain;
  llama.mlp = Mlp::kRelu2;
  return llama;
}

inline ModelSpec gpt2_shape(ModelSpec llama) {
  llama.kv_heads = llama.heads;
  llama.norm = Norm::kLayerNorm;
  llama.mlp = Mlp::kGelu;
  llama.positions = Positions::kLearned;
  llama.bias = true;
  llama.tied = true;
  return llama;
}

struct NamedModel {
  const char* name;
  ModelSpec model;
};

inline std::vector<NamedModel> model_shapes(const ModelSpec& llama) {
  return {{"llama", llama},
          {"qwen", qwen_shape(llama)},
          {"nanochat", nanochat_shape(llama)},
          {"gpt2", gpt2_shape(llama)}};
}

// Mixtures: every kind of routing, with and without the optional parts.
inline std::vector<NamedModel> mixture_shapes(const ModelSpec& llama) {
  ModelSpec mixtral = llama;
  mixtral.experts = 4;
  mixtral.experts_per_token = 2;
  ModelSpec deepseek = qwen_shape(llama);
  deepseek.experts = 5;
  deepseek.experts_per_token = 2;
  deepseek.expert_ffn = llama.ffn / 2;
  deepseek.shared_ffn = llama.ffn / 2;
  deepseek.dense_layers = 1;
  deepseek.router = Router::kSigmoid;
  deepseek.router_scale = 2.5;
  ModelSpec dropping = mixtral;
  dropping.capacity = 0.7;
  dropping.normalise_router = false;
  ModelSpec every_one = nanochat_shape(llama);
  every_one.experts = every_one.experts_per_token = 3;
  every_one.moe_every = 2;
  return {{"mixtral", mixtral},
          {"deepseek", deepseek},
          {"dropping", dropping},
          {"every expert", every_one}};
}

}  // namespace assay::spec::testing
