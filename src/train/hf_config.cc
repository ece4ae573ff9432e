#include "train/hf_config.h"

#include "train/hf_names.h"

namespace assay::train {
namespace {

// The keys for a mixture: those to add, and those that differ.
void add_mixtral(const spec::ModelSpec& m, base::Json& config) {
  config["num_local_experts"] = m.experts;
  config["num_experts_per_tok"] = m.experts_per_token;
  config["intermediate_size"] = m.expert_width();
  config["sliding_window"] = nullptr;
}

void add_qwen_mixture(const spec::ModelSpec& m, base::Json& config) {
  config["num_experts"] = m.experts;
  config["num_experts_per_tok"] = m.experts_per_token;
  config["moe_intermediate_size"] = m.expert_width();
  config["decoder_sparse_step"] = m.moe_every;
  config["norm_topk_prob"] = m.normalise_router;
  config["mlp_only_layers"] = base::Json::array();
  for (std::int64_t i = 0; i < m.dense_layers; ++i) config["mlp_only_layers"].push_back(i);
}

// As transformers 5 reads it; version 4 reads it along with rope_theta.
base::Json rope_of(const spec::ModelSpec& m) {
  base::Json rope{{"rope_type", "default"}, {"rope_theta", m.rope_theta}};
  if (m.rope_factor == 1) return rope;
  rope["rope_type"] = "llama3";
  rope["factor"] = m.rope_factor;
  rope["low_freq_factor"] = m.rope_low;
  rope["high_freq_factor"] = m.rope_high;
  rope["original_max_position_embeddings"] = m.rope_context;
  return rope;
}

struct Names {
  const char* architecture;
  const char* type;
};
Names names_of(HfKind kind) {
  switch (kind) {
    case HfKind::kQwen2:
      return {"Qwen2ForCausalLM", "qwen2"};
    case HfKind::kQwen3:
      return {"Qwen3ForCausalLM", "qwen3"};
    case HfKind::kMixtral:
      return {"MixtralForCausalLM", "mixtral"};
    case HfKind::kQwen3Moe:
      return {"Qwen3MoeForCausalLM", "qwen3_moe"};
    case HfKind::kGpt2:
      return {"GPT2LMHeadModel", "gpt2"};
    case HfKind::kLlama:
      break;
  }
  return {"LlamaForCausalLM", "llama"};
}

}  // namespace

base::Result<base::Json> hf_config(const spec::ModelSpec& m, const char* dtype) {
  ASSAY_TRY(const HfKind kind, hf_kind(m));
  const Names names = names_of(kind);
  if (kind == HfKind::kGpt2) {
    return base::Json{{"architectures", {names.architecture}},
                      {"model_type", names.type},
                      {"vocab_size", m.vocab},
                      {"n_embd", m.dim},
                      {"n_layer", m.layers},
                      {"n_head", m.heads},
                      {"n_inner", m.ffn},
                      {"n_positions", m.context},
                      {"activation_function", "gelu_new"},
                      {"layer_norm_epsilon", m.norm_epsilon},
                      {"resid_pdrop", 0.0},  // transformers enables dropout by default
                      {"embd_pdrop", 0.0},
                      {"attn_pdrop", 0.0},
                      {"tie_word_embeddings", true},
                      {"torch_dtype", dtype}};
  }
  base::Json config{{"architectures", {names.architecture}},
                    {"model_type", names.type},
                    {"vocab_size", m.vocab},
                    {"hidden_size", m.dim},
                    {"intermediate_size", m.ffn},
                    {"num_hidden_layers", m.layers},
                    {"num_attention_heads", m.heads},
                    {"num_key_value_heads", m.kv_heads},
                    {"head_dim", m.head_dim},
                    {"max_position_embeddings", m.context},
                    {"hidden_act", "silu"},
                    {"rms_norm_eps", m.norm_epsilon},
                    {"rope_theta", m.rope_theta},
                    {"rope_parameters", rope_of(m)},
                    {"attention_bias", false},
                    {"mlp_bias", false},
                    {"tie_word_embeddings", m.tied},
                    {"torch_dtype", dtype}};
  if (m.rope_factor > 1) {
    config["rope_scaling"] = rope_of(m);
    config["rope_scaling"].erase("rope_theta");
  }
  if (kind == HfKind::kMixtral) add_mixtral(m, config);
  if (kind == HfKind::kQwen3Moe) add_qwen_mixture(m, config);
  return config;
}

}  // namespace assay::train
