// What the models that can be trained differ in, made from one of any size.
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

}  // namespace assay::spec::testing
