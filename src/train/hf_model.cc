#include "train/hf_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string_view>

#include "base/error.h"

namespace assay::train {
namespace {

// Keys that affect neither logits nor gradients: names of files and tokens, how a model was
// initialised and regularised, what else a class can return. A key of one architecture is harmless
// in all of them.
constexpr std::array kHarmless = std::to_array<std::string_view>({
    "architectures",
    "model_type",
    "_name_or_path",
    "name_or_path",
    "torch_dtype",
    "dtype",
    "transformers_version",
    "use_cache",
    "bos_token_id",
    "eos_token_id",
    "pad_token_id",
    "initializer_range",
    "attention_dropout",
    "pretraining_tp",  // how sums were divided over devices
    "max_length",
    "output_router_logits",
    "router_aux_loss_coef",
    "router_jitter_noise",
    "max_window_layers",  // only for use_sliding_window, which is refused
    "n_ctx",
    "n_special",
    "predict_special_tokens",
    "output_past",
    "id2label",
    "label2id",
    "_num_labels",
    "is_llama_config",
    "attn_pdrop",
    "embd_pdrop",
    "resid_pdrop",
    "reorder_and_upcast_attn",
    "summary_activation",
    "summary_first_dropout",
    "summary_proj_to_labels",
    "summary_type",
    "summary_use_proj",
    "task_specific_params",
});

// The keys of an object; those never asked for are unknown.
class Keys {
 public:
  Keys(const base::Json& object, std::string where) : object_(object), where_(std::move(where)) {}

  // Null counts as missing, as in transformers.
  const base::Json* find(const std::string& key) {
    asked_.insert(key);
    const auto found = object_.find(key);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }
  [[nodiscard]] bool has(const std::string& key) const { return object_.contains(key); }
  base::Result<std::int64_t> whole_number(const std::string& key, std::int64_t otherwise) {
    const base::Json* found = find(key);
    if (found == nullptr) return otherwise;
    if (!found->is_number_integer()) return base::fail(wrong(key, "a whole number"));
    return found->get<std::int64_t>();
  }
  base::Result<double> number(const std::string& key, double otherwise) {
    const base::Json* found = find(key);
    if (found == nullptr) return otherwise;
    if (!found->is_number()) return base::fail(wrong(key, "a number"));
    return found->get<double>();
  }
  base::Result<bool> flag(const std::string& key, bool otherwise) {
    const base::Json* found = find(key);
    if (found == nullptr) return otherwise;
    if (!found->is_boolean()) return base::fail(wrong(key, "true or false"));
    return found->get<bool>();
  }
  // For features with only one supported value.
  base::Result<void> must_be(const std::string& key, const base::Json& value) {
    const base::Json* found = find(key);
    if (found == nullptr || *found == value) return {};
    return base::fail(not_supported(key));
  }

  [[nodiscard]] base::Result<void> every_key_is_understood() const {
    for (const auto& [key, value] : object_.items()) {
      if (asked_.contains(key) || std::ranges::find(kHarmless, key) != kHarmless.end()) continue;
      return base::fail(base::usage_error(where_, fmt::format("{} is not understood", key),
                                          "remove it if it changes neither logits nor gradients"));
    }
    return {};
  }

  [[nodiscard]] base::Error not_supported(const std::string& key) const {
    return base::usage_error(
        where_, fmt::format("{} is {}, which is not supported", key, object_[key].dump()));
  }
  [[nodiscard]] const std::string& where() const { return where_; }

 private:
  [[nodiscard]] base::Error wrong(const std::string& key, const char* expected) const {
    return base::usage_error(
        where_, fmt::format("{} is {}, expected {}", key, object_[key].dump(), expected));
  }

  const base::Json& object_;
  std::string where_;
  std::set<std::string> asked_;
};

// The defaults of transformers for keys that a config omits.
struct Family {
  std::string_view type;
  double epsilon = 1e-6;
  double rope_theta = 10000;
  std::optional<std::int64_t> head_dim;  // else width / heads
};
constexpr std::array kFamilies = std::to_array<Family>({
    {.type = "llama"},
    {.type = "mistral"},
    {.type = "qwen2"},
    {.type = "qwen3", .head_dim = 128},
    {.type = "mixtral", .epsilon = 1e-5, .rope_theta = 1e6},
    {.type = "qwen3_moe"},
});

base::Error no_such_model(const Keys& config, std::string_view type) {
  return base::usage_error(config.where(), fmt::format("does not describe a {} model", type),
                           "sizes must be whole numbers from 1, and heads must share keys evenly");
}

base::Result<spec::ModelSpec> gpt2_model(Keys& config) {
  spec::ModelSpec m;
  ASSAY_TRY(m.vocab, config.whole_number("vocab_size", 0));
  ASSAY_TRY(m.dim, config.whole_number("n_embd", 0));
  ASSAY_TRY(m.layers, config.whole_number("n_layer", 0));
  ASSAY_TRY(m.heads, config.whole_number("n_head", 0));
  ASSAY_TRY(m.context, config.whole_number("n_positions", 0));
  ASSAY_TRY(m.ffn, config.whole_number("n_inner", 4 * m.dim));
  ASSAY_TRY(m.norm_epsilon, config.number("layer_norm_epsilon", 1e-5));
  if (m.vocab < 2 || m.dim < 1 || m.layers < 1 || m.heads < 1 || m.context < 1 || m.ffn < 1 ||
      m.dim % m.heads != 0) {
    return base::fail(no_such_model(config, "gpt2"));
  }
  m.kv_heads = m.heads;
  m.head_dim = m.dim / m.heads;
  m.norm = spec::Norm::kLayerNorm;
  m.mlp = spec::Mlp::kGelu;
  m.positions = spec::Positions::kLearned;
  m.bias = m.tied = true;
  ASSAY_TRY_VOID(config.must_be("activation_function", "gelu_new"));
  ASSAY_TRY_VOID(config.must_be("tie_word_embeddings", true));
  ASSAY_TRY_VOID(config.must_be("scale_attn_weights", true));
  ASSAY_TRY_VOID(config.must_be("scale_attn_by_inverse_layer_idx", false));
  ASSAY_TRY_VOID(config.must_be("add_cross_attention", false));
  return m;
}

// `rope_scaling` of transformers 4, or `rope_parameters` of 5, which has the base as well.
base::Result<void> read_scaling(const base::Json& object, const std::string& where,
                                spec::ModelSpec& m) {
  Keys rope(object, where);
  ASSAY_TRY(m.rope_theta, rope.number("rope_theta", m.rope_theta));
  const base::Json* type = rope.find("rope_type");
  if (const base::Json* older = rope.find("type"); type == nullptr) type = older;
  if (type != nullptr && *type == "llama3") {
    ASSAY_TRY(m.rope_factor, rope.number("factor", 1));
    ASSAY_TRY(m.rope_low, rope.number("low_freq_factor", 1));
    ASSAY_TRY(m.rope_high, rope.number("high_freq_factor", 4));
    ASSAY_TRY(m.rope_context, rope.whole_number("original_max_position_embeddings", 8192));
    if (!(m.rope_factor >= 1 && m.rope_low > 0 && m.rope_high > m.rope_low && m.rope_context > 0)) {
      return base::fail(
          base::usage_error(where, "has impossible factors",
                            "factor must be at least 1, and low_freq_factor less than "
                            "high_freq_factor"));
    }
  } else if (type != nullptr && *type != "default") {
    return base::fail(base::usage_error(
        where, fmt::format("rope_type is {}, which is not supported", type->dump()),
        "\"default\" and \"llama3\" are"));
  }
  return rope.every_key_is_understood();
}

base::Result<void> read_rope(Keys& config, double otherwise, spec::ModelSpec& m) {
  ASSAY_TRY(m.rope_theta, config.number("rope_theta", otherwise));
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const base::Json* object = config.find(key);
    if (object == nullptr) continue;
    if (!object->is_object()) return base::fail(config.not_supported(key));
    ASSAY_TRY_VOID(read_scaling(*object, fmt::format("{}: {}", config.where(), key), m));
  }
  return {};
}

constexpr std::int64_t kMistralWindow = 4096;

// Sliding windows, where queries see only part of a sequence, are refused. A window as long as the
// longest sequence hides nothing, and Qwen's is used only if it says so.
base::Result<void> refuse_windows(Keys& config, std::string_view type, const spec::ModelSpec& m) {
  ASSAY_TRY_VOID(config.must_be("use_sliding_window", false));
  // Mistral's class has a window unless the config says null.
  const bool by_default = type == "mistral" && !config.has("sliding_window");
  ASSAY_TRY(const std::int64_t window,
            config.whole_number("sliding_window", by_default ? kMistralWindow : m.context));
  if (window < m.context && !type.starts_with("qwen")) {
    return base::fail(base::usage_error(
        config.where(), fmt::format("sliding_window is {}, which is not supported", window),
        fmt::format("with max_position_embeddings of {} at most it changes nothing", window)));
  }
  const base::Json* kinds = config.find("layer_types");
  if (kinds == nullptr) return {};
  for (const base::Json& kind : *kinds) {
    if (kind != "full_attention") return base::fail(config.not_supported("layer_types"));
  }
  return {};
}

base::Result<void> read_qwen_mixture(Keys& config, spec::ModelSpec& m) {
  // transformers has used both names for the same number.
  ASSAY_TRY(const std::int64_t other_name, config.whole_number("num_local_experts", 0));
  ASSAY_TRY(m.experts, config.whole_number("num_experts", other_name));
  ASSAY_TRY(m.expert_ffn, config.whole_number("moe_intermediate_size", 0));
  ASSAY_TRY(m.moe_every, config.whole_number("decoder_sparse_step", 1));
  ASSAY_TRY(m.normalise_router, config.flag("norm_topk_prob", false));
  if (m.expert_ffn < 1 || m.moe_every < 1) {
    return base::fail(
        base::usage_error(config.where(), "does not describe a qwen3_moe model",
                          "moe_intermediate_size and decoder_sparse_step must be at least 1"));
  }
  const base::Json* dense = config.find("mlp_only_layers");
  if (dense == nullptr) return {};
  if (!dense->is_array()) return base::fail(config.not_supported("mlp_only_layers"));
  for (const base::Json& layer : *dense) {
    if (!layer.is_number_integer() || layer.get<std::int64_t>() != m.dense_layers) {
      return base::fail(base::usage_error(
          config.where(),
          "mlp_only_layers has others than the first layers, which is not supported"));
    }
    ++m.dense_layers;
  }
  return {};
}

base::Result<void> read_experts(Keys& config, std::string_view type, spec::ModelSpec& m) {
  if (type == "mixtral") {
    ASSAY_TRY(m.experts, config.whole_number("num_local_experts", 0));
  } else if (type == "qwen3_moe") {
    ASSAY_TRY_VOID(read_qwen_mixture(config, m));
  } else {
    return {};
  }
  ASSAY_TRY(m.experts_per_token, config.whole_number("num_experts_per_tok", 0));
  const std::string& where = config.where();
  if (m.experts < 1) {
    return base::fail(base::usage_error(
        where, fmt::format("does not say how many experts this {} model has", type),
        type == "mixtral" ? "num_local_experts does" : "num_experts does"));
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

base::Result<spec::ModelSpec> llama_model(Keys& config, const Family& family) {
  spec::ModelSpec m;
  ASSAY_TRY(m.vocab, config.whole_number("vocab_size", 0));
  ASSAY_TRY(m.dim, config.whole_number("hidden_size", 0));
  ASSAY_TRY(m.layers, config.whole_number("num_hidden_layers", 0));
  ASSAY_TRY(m.heads, config.whole_number("num_attention_heads", 0));
  // Only Llama's class defaults to the number of heads; for the others the key is required.
  const std::int64_t kv_heads = family.type == "llama" ? m.heads : 0;
  ASSAY_TRY(m.kv_heads, config.whole_number("num_key_value_heads", kv_heads));
  ASSAY_TRY(m.ffn, config.whole_number("intermediate_size", 0));
  ASSAY_TRY(m.context, config.whole_number("max_position_embeddings", 0));
  if (m.vocab < 2 || m.dim < 1 || m.layers < 1 || m.heads < 1 || m.kv_heads < 1 || m.ffn < 1 ||
      m.context < 1 || m.heads % m.kv_heads != 0) {
    return base::fail(no_such_model(config, family.type));
  }
  ASSAY_TRY(m.head_dim, config.whole_number("head_dim", family.head_dim.value_or(m.dim / m.heads)));
  ASSAY_TRY(m.norm_epsilon, config.number("rms_norm_eps", family.epsilon));
  if (m.head_dim < 2 || m.head_dim % 2 != 0 || !(m.norm_epsilon >= 0 && m.norm_epsilon <= 1)) {
    return base::fail(no_such_model(config, family.type));
  }
  ASSAY_TRY(m.tied, config.flag("tie_word_embeddings", false));
  ASSAY_TRY_VOID(config.must_be("hidden_act", "silu"));
  ASSAY_TRY_VOID(config.must_be("attention_bias", false));
  ASSAY_TRY_VOID(config.must_be("mlp_bias", false));
  ASSAY_TRY_VOID(config.must_be("use_mrope", false));
  ASSAY_TRY_VOID(config.must_be("rope_interleaved", false));
  ASSAY_TRY_VOID(read_rope(config, family.rope_theta, m));
  ASSAY_TRY_VOID(refuse_windows(config, family.type, m));
  if (family.type.starts_with("qwen3")) m.qk_norm = spec::QkNorm::kLearned;
  if (family.type == "qwen2") m.qkv_bias = true;
  ASSAY_TRY_VOID(read_experts(config, family.type, m));
  return m;
}

}  // namespace

base::Result<spec::ModelSpec> model_from_hf(const base::Json& json, const std::string& where) {
  Keys config(json, where);
  const base::Json* found = config.find("model_type");
  const std::string type = found != nullptr && found->is_string() ? found->get<std::string>() : "";
  const auto family = std::ranges::find(kFamilies, type, &Family::type);
  if (type != "gpt2" && family == kFamilies.end()) {
    return base::fail(base::usage_error(
        where, fmt::format("unknown model_type '{}'", type),
        "llama, mistral, qwen2, qwen3, gpt2, mixtral and qwen3_moe are supported"));
  }
  ASSAY_TRY(const spec::ModelSpec model,
            type == "gpt2" ? gpt2_model(config) : llama_model(config, *family));
  ASSAY_TRY_VOID(config.every_key_is_understood());
  return model;
}

}  // namespace assay::train
