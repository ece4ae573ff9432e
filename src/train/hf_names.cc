#include "train/hf_names.h"

#include <fmt/format.h>

#include "base/error.h"
#include "step/parameter.h"

namespace assay::train {
namespace {

class HfList {
 public:
  explicit HfList(const spec::ModelSpec& model) : model_(model) {
    parameters_ = step::list_parameters(model, spec::Optimizer::kAdamw);
  }

  std::vector<HfTensor> llama() {
    whole("model.embed_tokens.weight", "embedding");
    for (std::int64_t layer = 0; layer < model_.layers; ++layer) llama_block(layer);
    whole("model.norm.weight", "final_norm");
    if (!model_.tied) whole("lm_head.weight", "head");
    return std::move(list_);
  }

  std::vector<HfTensor> gpt2() {
    whole("transformer.wte.weight", "embedding");
    whole("transformer.wpe.weight", "positions");
    for (std::int64_t layer = 0; layer < model_.layers; ++layer) gpt2_block(layer);
    whole("transformer.ln_f.weight", "final_norm");
    whole("transformer.ln_f.bias", "final_norm_bias");
    return std::move(list_);
  }

 private:
  const step::Parameter& find(const std::string& name) const {
    return *std::find_if(parameters_.begin(), parameters_.end(),
                         [&](const step::Parameter& p) { return p.name == name; });
  }
  void rows(std::string name, const std::string& parameter, std::int64_t first,
            std::int64_t count) {
    const step::Parameter& p = find(parameter);
    list_.push_back(
        {std::move(name), parameter, first, count, p.cols, p.init != step::Init::kNormal});
  }
  void whole(std::string name, const std::string& parameter, bool transposed = false) {
    rows(std::move(name), parameter, 0, find(parameter).rows);
    list_.back().transposed = transposed;
  }

  void elements(std::string name, const std::string& parameter, std::int64_t first,
                std::int64_t count) {
    list_.push_back({std::move(name), parameter, first, count, 1, /*vector=*/true});
  }

  // Queries, keys and values are one parameter here.
  void qkv_biases(const std::string& hf_prefix, const std::string& prefix) {
    const std::int64_t q = model_.q_dim();
    const std::int64_t kv = model_.kv_dim();
    elements(hf_prefix + "self_attn.q_proj.bias", prefix + "qkv_bias", 0, q);
    elements(hf_prefix + "self_attn.k_proj.bias", prefix + "qkv_bias", q, kv);
    elements(hf_prefix + "self_attn.v_proj.bias", prefix + "qkv_bias", q + kv, kv);
  }

  void llama_block(std::int64_t layer) {
    const spec::ModelSpec& m = model_;
    const std::string hf_prefix = fmt::format("model.layers.{}.", layer);
    const std::string prefix = fmt::format("layers.{}.", layer);
    whole(hf_prefix + "input_layernorm.weight", prefix + "attention_norm");
    rows(hf_prefix + "self_attn.q_proj.weight", prefix + "qkv", 0, m.q_dim());
    rows(hf_prefix + "self_attn.k_proj.weight", prefix + "qkv", m.q_dim(), m.kv_dim());
    rows(hf_prefix + "self_attn.v_proj.weight", prefix + "qkv", m.q_dim() + m.kv_dim(), m.kv_dim());
    if (m.qkv_bias) qkv_biases(hf_prefix, prefix);
    if (m.qk_norm == spec::QkNorm::kLearned) {
      whole(hf_prefix + "self_attn.q_norm.weight", prefix + "query_norm");
      whole(hf_prefix + "self_attn.k_norm.weight", prefix + "key_norm");
    }
    whole(hf_prefix + "self_attn.o_proj.weight", prefix + "attention_out");
    whole(hf_prefix + "post_attention_layernorm.weight", prefix + "mlp_norm");
    if (m.is_moe_layer(layer)) return experts(hf_prefix, prefix);
    rows(hf_prefix + "mlp.gate_proj.weight", prefix + "gate_up", 0, m.ffn);
    rows(hf_prefix + "mlp.up_proj.weight", prefix + "gate_up", m.ffn, m.ffn);
    whole(hf_prefix + "mlp.down_proj.weight", prefix + "down");
  }

  // One tensor per matrix of each expert; mixtral and qwen3 have different names for the same.
  void experts(const std::string& hf_prefix, const std::string& prefix) {
    const bool qwen = model_.qk_norm == spec::QkNorm::kLearned;
    const std::string mlp = hf_prefix + (qwen ? "mlp." : "block_sparse_moe.");
    const std::int64_t width = model_.expert_width();
    const auto expert = [&](std::int64_t e, const char* of_mixtral, const char* of_qwen) {
      return fmt::format("{}experts.{}.{}.weight", mlp, e, qwen ? of_qwen : of_mixtral);
    };
    whole(mlp + "gate.weight", prefix + "router");
    for (std::int64_t e = 0; e < model_.experts; ++e) {
      const std::int64_t first = 2 * e * width;
      rows(expert(e, "w1", "gate_proj"), prefix + "expert_gate_up", first, width);
      rows(expert(e, "w3", "up_proj"), prefix + "expert_gate_up", first + width, width);
    }
    for (std::int64_t e = 0; e < model_.experts; ++e) {
      rows(expert(e, "w2", "down_proj"), prefix + "expert_down", e * model_.dim, model_.dim);
    }
  }

  // gpt2 stores its matrices transposed.
  void gpt2_block(std::int64_t layer) {
    const std::string hf_prefix = fmt::format("transformer.h.{}.", layer);
    const std::string prefix = fmt::format("layers.{}.", layer);
    const auto norm = [&](const char* hf_name, const char* name) {
      whole(hf_prefix + hf_name + ".weight", prefix + name);
      whole(hf_prefix + hf_name + ".bias", prefix + name + "_bias");
    };
    const auto matrix = [&](const char* hf_name, const char* name) {
      whole(hf_prefix + hf_name + ".weight", prefix + name, true);
      whole(hf_prefix + hf_name + ".bias", prefix + name + "_bias");
    };
    norm("ln_1", "attention_norm");
    matrix("attn.c_attn", "qkv");
    matrix("attn.c_proj", "attention_out");
    norm("ln_2", "mlp_norm");
    matrix("mlp.c_fc", "gate_up");
    matrix("mlp.c_proj", "down");
  }

  const spec::ModelSpec& model_;
  std::vector<step::Parameter> parameters_;
  std::vector<HfTensor> list_;
};

// Mixtral has experts in every layer, and always normalises the weights of a token's experts to sum
// to 1.
bool is_known_mixture(const spec::ModelSpec& m) {
  if (m.router != spec::Router::kSoftmax || m.router_scale != 1 || m.shared_ffn > 0 ||
      m.capacity > 0) {
    return false;
  }
  return m.qk_norm == spec::QkNorm::kLearned ||
         (m.normalise_router && m.moe_every == 1 && m.dense_layers == 0);
}

bool is_llama(const spec::ModelSpec& m) {
  return m.norm == spec::Norm::kRmsNorm && m.mlp == spec::Mlp::kSwiglu &&
         m.positions == spec::Positions::kRope && !m.bias && (!m.is_moe() || is_known_mixture(m)) &&
         m.qk_norm != spec::QkNorm::kPlain && !m.value_embeddings && !m.residual_lambdas &&
         (!m.qkv_bias || (m.qk_norm == spec::QkNorm::kNone && !m.is_moe()));
}

bool is_gpt2(const spec::ModelSpec& m) {
  return m.norm == spec::Norm::kLayerNorm && m.mlp == spec::Mlp::kGelu &&
         m.positions == spec::Positions::kLearned && m.bias && m.tied && !m.is_moe() &&
         m.qk_norm == spec::QkNorm::kNone && m.kv_heads == m.heads && m.q_dim() == m.dim;
}

}  // namespace

std::vector<std::int64_t> HfTensor::shape() const {
  if (vector) return {count * cols};
  return transposed ? std::vector{cols, count} : std::vector{count, cols};
}

base::Result<HfKind> hf_kind(const spec::ModelSpec& model) {
  if (is_gpt2(model)) return HfKind::kGpt2;
  if (!is_llama(model)) {
    return base::fail(base::usage_error(
        "model", "has no equivalent in Hugging Face transformers",
        "llama, qwen2, qwen3, gpt2, mixtral and qwen3_moe can be exported and imported"));
  }
  const bool qwen = model.qk_norm == spec::QkNorm::kLearned;
  if (model.is_moe()) return qwen ? HfKind::kQwen3Moe : HfKind::kMixtral;
  if (model.qkv_bias) return HfKind::kQwen2;
  return qwen ? HfKind::kQwen3 : HfKind::kLlama;
}

base::Result<std::vector<HfTensor>> hf_tensors(const spec::ModelSpec& model) {
  ASSAY_TRY(const HfKind kind, hf_kind(model));
  return kind == HfKind::kGpt2 ? HfList(model).gpt2() : HfList(model).llama();
}

}  // namespace assay::train
