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

  void llama_block(std::int64_t layer) {
    const spec::ModelSpec& m = model_;
    const std::string hf_prefix = fmt::format("model.layers.{}.", layer);
    const std::string prefix = fmt::format("layers.{}.", layer);
    whole(hf_prefix + "input_layernorm.weight", prefix + "attention_norm");
    rows(hf_prefix + "self_attn.q_proj.weight", prefix + "qkv", 0, m.q_dim());
    rows(hf_prefix + "self_attn.k_proj.weight", prefix + "qkv", m.q_dim(), m.kv_dim());
    rows(hf_prefix + "self_attn.v_proj.weight", prefix + "qkv", m.q_dim() + m.kv_dim(), m.kv_dim());
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

// Mixtures of mixtral's and of qwen3's kind: the first has experts in every layer, and always makes
// the weights of a token's experts add up to 1.
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
         m.qk_norm != spec::QkNorm::kPlain && !m.value_embeddings && !m.residual_lambdas;
}

bool is_gpt2(const spec::ModelSpec& m) {
  return m.norm == spec::Norm::kLayerNorm && m.mlp == spec::Mlp::kGelu &&
         m.positions == spec::Positions::kLearned && m.bias && m.tied && !m.is_moe() &&
         m.qk_norm == spec::QkNorm::kNone && m.kv_heads == m.heads && m.q_dim() == m.dim;
}

base::Error no_architecture() {
  return base::usage_error(
      "model", "has no equivalent in Hugging Face transformers",
      "llama, qwen3, gpt2, mixtral and qwen3_moe can be exported and imported");
}

// An integer of config.json, or nothing.
std::optional<std::int64_t> whole_number(const base::Json& config, const char* key) {
  const auto found = config.find(key);
  if (found == config.end() || !found->is_number_integer()) return std::nullopt;
  return found->get<std::int64_t>();
}

base::Result<spec::ModelSpec> gpt2_model(const base::Json& config, const std::string& where) {
  spec::ModelSpec m;
  m.vocab = whole_number(config, "vocab_size").value_or(0);
  m.dim = whole_number(config, "n_embd").value_or(0);
  m.layers = whole_number(config, "n_layer").value_or(0);
  m.heads = m.kv_heads = whole_number(config, "n_head").value_or(0);
  m.context = whole_number(config, "n_positions").value_or(0);
  m.ffn = whole_number(config, "n_inner").value_or(4 * m.dim);
  if (m.vocab < 2 || m.dim < 1 || m.layers < 1 || m.heads < 1 || m.context < 1 ||
      m.dim % m.heads != 0) {
    return base::fail(base::usage_error(where, "does not describe a gpt2 model"));
  }
  m.head_dim = m.dim / m.heads;
  m.norm = spec::Norm::kLayerNorm;
  m.mlp = spec::Mlp::kGelu;
  m.positions = spec::Positions::kLearned;
  m.bias = m.tied = true;
  return m;
}

bool flag(const base::Json& config, const char* key, bool otherwise) {
  const auto found = config.find(key);
  return found != config.end() && found->is_boolean() ? found->get<bool>() : otherwise;
}

base::Result<void> read_mixtral(const base::Json& config, const std::string& where,
                                spec::ModelSpec& m) {
  m.experts = whole_number(config, "num_local_experts").value_or(0);
  m.experts_per_token = whole_number(config, "num_experts_per_tok").value_or(0);
  const auto window = config.find("sliding_window");
  if (window != config.end() && !window->is_null()) {
    return base::fail(base::usage_error(where, "sliding_window is not supported"));
  }
  return {};
}

base::Result<void> read_qwen_mixture(const base::Json& config, const std::string& where,
                                     spec::ModelSpec& m) {
  m.experts = whole_number(config, "num_experts").value_or(0);
  m.experts_per_token = whole_number(config, "num_experts_per_tok").value_or(0);
  m.expert_ffn = whole_number(config, "moe_intermediate_size").value_or(0);
  m.moe_every = whole_number(config, "decoder_sparse_step").value_or(1);
  m.normalise_router = flag(config, "norm_topk_prob", false);
  const auto dense = config.find("mlp_only_layers");
  if (dense == config.end() || !dense->is_array()) return {};
  for (const base::Json& layer : *dense) {
    if (!layer.is_number_integer() || layer.get<std::int64_t>() != m.dense_layers) {
      return base::fail(base::usage_error(
          where, "mlp_only_layers has others than the first layers, which is not supported"));
    }
    ++m.dense_layers;
  }
  return {};
}

base::Result<void> read_experts(const base::Json& config, const std::string& name,
                                const std::string& where, spec::ModelSpec& m) {
  if (name == "mixtral") {
    ASSAY_TRY_VOID(read_mixtral(config, where, m));
  } else if (name == "qwen3_moe") {
    ASSAY_TRY_VOID(read_qwen_mixture(config, where, m));
  } else {
    return {};
  }
  if (m.experts < 1 || m.experts_per_token < 1 || m.experts_per_token > m.experts ||
      m.expert_ffn < 0 || m.moe_every < 1 || m.moe_layers() < 1) {
    return base::fail(base::usage_error(where, fmt::format("does not describe a {} model", name)));
  }
  return {};
}

// What a config says of a mixture beside the rest.
void add_experts(const spec::ModelSpec& m, base::Json& config) {
  if (!m.is_moe()) return;
  config["num_experts_per_tok"] = m.experts_per_token;
  if (m.qk_norm != spec::QkNorm::kLearned) {
    config["architectures"] = {"MixtralForCausalLM"};
    config["model_type"] = "mixtral";
    config["num_local_experts"] = m.experts;
    config["intermediate_size"] = m.expert_width();
    config["sliding_window"] = nullptr;
    return;
  }
  config["architectures"] = {"Qwen3MoeForCausalLM"};
  config["model_type"] = "qwen3_moe";
  config["num_experts"] = m.experts;
  config["moe_intermediate_size"] = m.expert_width();
  config["decoder_sparse_step"] = m.moe_every;
  config["norm_topk_prob"] = m.normalise_router;
  config["mlp_only_layers"] = base::Json::array();
  for (std::int64_t i = 0; i < m.dense_layers; ++i) config["mlp_only_layers"].push_back(i);
}

double rope_theta_of(const base::Json& config) {
  if (const auto plain = config.find("rope_theta"); plain != config.end() && plain->is_number()) {
    return plain->get<double>();
  }
  const auto nested = config.find("rope_parameters");
  if (nested != config.end() && nested->is_object()) {
    const auto theta = nested->find("rope_theta");
    if (theta != nested->end() && theta->is_number()) return theta->get<double>();
  }
  return 10000.0;
}

}  // namespace

std::vector<std::int64_t> HfTensor::shape() const {
  if (vector) return {cols};
  return transposed ? std::vector{cols, count} : std::vector{count, cols};
}

base::Result<std::vector<HfTensor>> hf_tensors(const spec::ModelSpec& model) {
  if (is_llama(model)) return HfList(model).llama();
  if (is_gpt2(model)) return HfList(model).gpt2();
  return base::fail(no_architecture());
}

base::Result<base::Json> hf_config(const spec::ModelSpec& m, const char* dtype) {
  if (is_gpt2(m)) {
    return base::Json{{"architectures", {"GPT2LMHeadModel"}},
                      {"model_type", "gpt2"},
                      {"vocab_size", m.vocab},
                      {"n_embd", m.dim},
                      {"n_layer", m.layers},
                      {"n_head", m.heads},
                      {"n_inner", m.ffn},
                      {"n_positions", m.context},
                      {"activation_function", "gelu_new"},
                      {"layer_norm_epsilon", 1e-5},
                      {"resid_pdrop", 0.0},  // transformers enables dropout by default
                      {"embd_pdrop", 0.0},
                      {"attn_pdrop", 0.0},
                      {"tie_word_embeddings", true},
                      {"torch_dtype", dtype}};
  }
  if (!is_llama(m)) return base::fail(no_architecture());
  const bool qwen = m.qk_norm == spec::QkNorm::kLearned;
  base::Json config{{"architectures", {qwen ? "Qwen3ForCausalLM" : "LlamaForCausalLM"}},
                    {"model_type", qwen ? "qwen3" : "llama"},
                    {"vocab_size", m.vocab},
                    {"hidden_size", m.dim},
                    {"intermediate_size", m.ffn},
                    {"num_hidden_layers", m.layers},
                    {"num_attention_heads", m.heads},
                    {"num_key_value_heads", m.kv_heads},
                    {"head_dim", m.head_dim},
                    {"max_position_embeddings", m.context},
                    {"hidden_act", "silu"},
                    {"rms_norm_eps", 1e-5},
                    {"rope_theta", m.rope_theta},
                    {"rope_parameters", {{"rope_type", "default"}, {"rope_theta", m.rope_theta}}},
                    {"attention_bias", false},
                    {"mlp_bias", false},
                    {"tie_word_embeddings", m.tied},
                    {"torch_dtype", dtype}};
  add_experts(m, config);
  return config;
}

base::Result<spec::ModelSpec> model_from_hf(const base::Json& config, const std::string& where) {
  const auto type = config.find("model_type");
  const std::string name =
      type != config.end() && type->is_string() ? type->get<std::string>() : "";
  if (name == "gpt2") return gpt2_model(config, where);
  const bool qwen = name == "qwen3" || name == "qwen3_moe";
  if (!qwen && name != "llama" && name != "mixtral") {
    return base::fail(base::usage_error(where, fmt::format("unknown model_type '{}'", name),
                                        "llama, qwen3, gpt2, mixtral and qwen3_moe are supported"));
  }
  const auto epsilon = config.find("rms_norm_eps");
  if (epsilon != config.end() && epsilon->is_number() && epsilon->get<double>() != 1e-5) {
    return base::fail(base::usage_error(
        where,
        fmt::format("rms_norm_eps is {}, but only 1e-05 is supported", epsilon->get<double>())));
  }
  if (const auto scaling = config.find("rope_scaling");
      scaling != config.end() && !scaling->is_null()) {
    return base::fail(base::usage_error(where, "rope_scaling is not supported"));
  }
  spec::ModelSpec m;
  m.vocab = whole_number(config, "vocab_size").value_or(0);
  m.dim = whole_number(config, "hidden_size").value_or(0);
  m.layers = whole_number(config, "num_hidden_layers").value_or(0);
  m.heads = whole_number(config, "num_attention_heads").value_or(0);
  m.kv_heads = whole_number(config, "num_key_value_heads").value_or(m.heads);
  m.ffn = whole_number(config, "intermediate_size").value_or(0);
  m.context = whole_number(config, "max_position_embeddings").value_or(0);
  if (m.vocab < 2 || m.dim < 1 || m.layers < 1 || m.heads < 1 || m.kv_heads < 1 || m.ffn < 1 ||
      m.context < 1 || m.heads % m.kv_heads != 0) {
    return base::fail(base::usage_error(where, "does not describe a llama model"));
  }
  m.head_dim = whole_number(config, "head_dim").value_or(m.dim / m.heads);
  m.rope_theta = rope_theta_of(config);
  m.tied = flag(config, "tie_word_embeddings", false);
  if (qwen) m.qk_norm = spec::QkNorm::kLearned;
  ASSAY_TRY_VOID(read_experts(config, name, where, m));
  return m;
}

}  // namespace assay::train
