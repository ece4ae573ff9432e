#include "train/hf_config.h"

#include <fmt/format.h>

#include <optional>

#include "base/error.h"
#include "train/hf_names.h"

namespace assay::train {
namespace {

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

base::Error cannot(const std::string& where, std::string what) {
  return base::usage_error(where, std::move(what) + ", which is not supported");
}

// What changes the results, and what no architecture here computes otherwise.
base::Result<void> refuse_others(const base::Json& config, const std::string& where) {
  const auto act = config.find("hidden_act");
  if (act != config.end() && *act != "silu") {
    return base::fail(cannot(where, fmt::format("hidden_act is {}", act->dump())));
  }
  for (const char* key : {"attention_bias", "mlp_bias", "use_sliding_window"}) {
    if (flag(config, key, false)) return base::fail(cannot(where, fmt::format("{} is true", key)));
  }
  if (const auto scaling = config.find("rope_scaling");
      scaling != config.end() && !scaling->is_null()) {
    return base::fail(base::usage_error(where, "rope_scaling is not supported"));
  }
  const auto rope = config.find("rope_parameters");
  if (rope == config.end() || !rope->is_object()) return {};
  const auto type = rope->find("rope_type");
  if (type != rope->end() && *type != "default") {
    return base::fail(cannot(where, fmt::format("rope_type is {}", type->dump())));
  }
  return {};
}

base::Result<void> read_mixtral(const base::Json& config, const std::string& where,
                                spec::ModelSpec& m) {
  m.experts = whole_number(config, "num_local_experts").value_or(0);
  const auto window = config.find("sliding_window");
  if (window != config.end() && !window->is_null()) {
    return base::fail(base::usage_error(where, "sliding_window is not supported"));
  }
  return {};
}

base::Result<void> read_qwen_mixture(const base::Json& config, const std::string& where,
                                     spec::ModelSpec& m) {
  // transformers has written the same number under both names.
  const auto experts = whole_number(config, "num_experts");
  m.experts = experts ? *experts : whole_number(config, "num_local_experts").value_or(0);
  m.expert_ffn = whole_number(config, "moe_intermediate_size").value_or(0);
  m.moe_every = whole_number(config, "decoder_sparse_step").value_or(1);
  m.normalise_router = flag(config, "norm_topk_prob", false);
  if (m.expert_ffn < 1 || m.moe_every < 1) {
    return base::fail(
        base::usage_error(where, "does not describe a qwen3_moe model",
                          "moe_intermediate_size and decoder_sparse_step are 1 or more"));
  }
  const auto dense = config.find("mlp_only_layers");
  if (dense == config.end() || !dense->is_array()) return {};
  for (const base::Json& layer : *dense) {
    if (!layer.is_number_integer() || layer.get<std::int64_t>() != m.dense_layers) {
      return base::fail(cannot(where, "mlp_only_layers has others than the first layers"));
    }
    ++m.dense_layers;
  }
  return {};
}

base::Result<void> read_experts(const base::Json& config, const std::string& name,
                                const std::string& where, spec::ModelSpec& m) {
  if (name != "mixtral" && name != "qwen3_moe") return {};
  ASSAY_TRY_VOID(name == "mixtral" ? read_mixtral(config, where, m)
                                   : read_qwen_mixture(config, where, m));
  m.experts_per_token = whole_number(config, "num_experts_per_tok").value_or(0);
  if (m.experts < 1) {
    return base::fail(base::usage_error(
        where, fmt::format("does not say how many experts this {} model has", name),
        name == "mixtral" ? "num_local_experts does" : "num_experts does"));
  }
  if (m.experts_per_token < 1) {
    return base::fail(base::usage_error(where, "does not say how many experts a token is sent to",
                                        "num_experts_per_tok does"));
  }
  if (m.experts_per_token > m.experts) {
    return base::fail(
        base::usage_error(where, fmt::format("num_experts_per_tok is {}, but there are {} experts",
                                             m.experts_per_token, m.experts)));
  }
  if (m.moe_layers() < 1) {
    return base::fail(
        base::usage_error(where, fmt::format("leaves no layer with experts among {}", m.layers),
                          "mlp_only_layers and decoder_sparse_step say which have them"));
  }
  return {};
}

// What a config says of a mixture beside the rest, and otherwise.
void add_mixtral(const spec::ModelSpec& m, base::Json& config) {
  config["architectures"] = {"MixtralForCausalLM"};
  config["model_type"] = "mixtral";
  config["num_local_experts"] = m.experts;
  config["num_experts_per_tok"] = m.experts_per_token;
  config["intermediate_size"] = m.expert_width();
  config["sliding_window"] = nullptr;
}

void add_qwen_mixture(const spec::ModelSpec& m, base::Json& config) {
  config["architectures"] = {"Qwen3MoeForCausalLM"};
  config["model_type"] = "qwen3_moe";
  config["num_experts"] = m.experts;
  config["num_experts_per_tok"] = m.experts_per_token;
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

base::Result<base::Json> hf_config(const spec::ModelSpec& m, const char* dtype) {
  ASSAY_TRY(const HfKind kind, hf_kind(m));
  if (kind == HfKind::kGpt2) {
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
  const bool qwen = kind == HfKind::kQwen3;
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
  if (kind == HfKind::kMixtral) add_mixtral(m, config);
  if (kind == HfKind::kQwen3Moe) add_qwen_mixture(m, config);
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
  ASSAY_TRY_VOID(refuse_others(config, where));
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
    return base::fail(base::usage_error(where, fmt::format("does not describe a {} model", name)));
  }
  m.head_dim = whole_number(config, "head_dim").value_or(m.dim / m.heads);
  m.rope_theta = rope_theta_of(config);
  m.tied = flag(config, "tie_word_embeddings", false);
  if (qwen) m.qk_norm = spec::QkNorm::kLearned;
  ASSAY_TRY_VOID(read_experts(config, name, where, m));
  return m;
}

}  // namespace assay::train
