// ModelSpec: the shape of a decoder. Everything that counts parameters or builds layers reads it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace assay::spec {

enum class Norm {
  kRmsNorm,       // x / rms(x), times a learned weight
  kRmsNormPlain,  // x / rms(x), nothing learned
  kLayerNorm,     // learned weight and bias
};
enum class QkNorm { kNone, kPlain, kLearned };
enum class Mlp { kSwiglu, kGelu, kRelu2 };
enum class Positions { kRope, kLearned };
enum class Router {
  kSoftmax,  // over all experts; the largest are chosen
  kSigmoid,  // of each logit; chosen with a bias that balances the load instead of a loss
};

struct ModelSpec {
  std::int64_t vocab = 0;
  std::int64_t dim = 0;
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;  // default: heads
  std::int64_t head_dim = 0;  // default: dim / heads
  std::int64_t ffn = 0;
  std::int64_t context = 0;

  Norm norm = Norm::kRmsNorm;
  QkNorm qk_norm = QkNorm::kNone;
  Mlp mlp = Mlp::kSwiglu;
  double norm_epsilon = 1e-5;  // of every norm, including those of queries and keys
  Positions positions = Positions::kRope;
  double rope_theta = 10000.0;
  // Llama 3.1's scaling of rotary positions (rope_frequencies()); a factor of 1 means none.
  double rope_factor = 1;
  double rope_low = 1;
  double rope_high = 4;
  std::int64_t rope_context = 8192;
  bool bias = false;
  bool qkv_bias = false;  // only on queries, keys and values
  bool tied = false;

  // Latent attention, as in DeepSeek-V2 and V3: queries, and keys with values, are made from a
  // latent each, and a part of every key's width, which has the positions, is common to all heads.
  // The names are those of published configurations.
  std::int64_t kv_lora_rank = 0;      // 0: none
  std::int64_t q_lora_rank = 0;       // 0: queries are made directly
  std::int64_t qk_nope_head_dim = 0;  // of a head's queries and keys, without positions
  std::int64_t qk_rope_head_dim = 0;  // and with them; head_dim is the sum
  std::int64_t v_head_dim = 0;

  std::int64_t experts = 0;  // 0: dense
  std::int64_t experts_per_token = 0;
  std::int64_t moe_every = 1;
  double capacity = 0;            // rows per expert, as a multiple of an even share; 0: unlimited
  std::int64_t expert_ffn = 0;    // 0: ffn
  std::int64_t shared_ffn = 0;    // width of a shared expert, used by every token; 0: none
  std::int64_t dense_layers = 0;  // the first layers, which are never mixtures
  Router router = Router::kSoftmax;
  std::int64_t router_groups = 0;  // of experts, that a token's are chosen from at most; 0: any
  bool normalise_router = true;    // weights of a token's experts sum to router_scale
  double router_scale = 1;

  bool value_embeddings = false;
  bool residual_lambdas = false;

  [[nodiscard]] bool has_latent_attention() const { return kv_lora_rank > 0; }
  // Of a head's values, and so of what attention makes.
  [[nodiscard]] std::int64_t value_dim() const {
    return has_latent_attention() ? v_head_dim : head_dim;
  }
  [[nodiscard]] bool is_moe() const { return experts > 0; }
  [[nodiscard]] bool is_moe_layer(std::int64_t layer) const {
    return is_moe() && layer >= dense_layers && (layer + 1) % moe_every == 0;
  }
  [[nodiscard]] std::int64_t moe_layers() const {
    return is_moe() ? layers / moe_every - std::min(layers, dense_layers) / moe_every : 0;
  }
  [[nodiscard]] std::int64_t expert_width() const { return expert_ffn > 0 ? expert_ffn : ffn; }
  [[nodiscard]] std::int64_t q_dim() const { return heads * head_dim; }
  [[nodiscard]] std::int64_t kv_dim() const { return kv_heads * head_dim; }
  [[nodiscard]] std::int64_t qkv_dim() const { return q_dim() + 2 * kv_dim(); }
  [[nodiscard]] bool has_qkv_bias() const { return bias || qkv_bias; }
  [[nodiscard]] bool is_gated() const { return mlp == Mlp::kSwiglu; }
  // The output of the MLP's first product: gate and up side by side, or up alone.
  [[nodiscard]] std::int64_t inner_dim() const { return inner_of(ffn); }
  [[nodiscard]] std::int64_t inner_of(std::int64_t width) const {
    return is_gated() ? 2 * width : width;
  }
};

// Rotary positions: radians per position for the head_dim / 2 pairs, the fastest first. With a
// rope_factor above 1 they are scaled as in Llama 3.1: pairs that rotate at most rope_low times
// within rope_context are slowed down by the factor, those that rotate at least rope_high times are
// unchanged, and in between the two are interpolated linearly in the number of rotations.
std::vector<double> rope_frequencies(const ModelSpec& model);

}  // namespace assay::spec
