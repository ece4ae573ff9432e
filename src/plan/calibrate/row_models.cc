#include "plan/calibrate/row_models.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "plan/calibrate/row_text.h"

namespace assay::plan {
namespace {

// Published shapes. Head dimensions where they do not follow from the others.
struct PublishedModel {
  std::string_view name;  // as contains_like() reads it
  double layers, dim, ffn, heads, kv_heads, head_dim, vocab;
  double experts, per_token, expert_ffn, shared_ffn, dense_layers;
  double parameters;
  double expert_dim = 0;
};

// The first that fits counts. Of hybrids (Nemotron H and 3) a layer here is a pair of mixer and
// MLP; mixers are attention over a window, of as many heads as have their parameters.
constexpr std::array<PublishedModel, 25> kPublishedModels = {{
    {"deepseek?v3", 61, 7168, 18432, 128, 128, 160, 129280, 256, 8, 2048, 2048, 3, 671e9},
    {"kimi?k2", 61, 7168, 18432, 64, 64, 160, 163840, 384, 8, 2048, 2048, 1, 1026e9},
    {"gpt?oss?120b", 36, 2880, 2880, 64, 8, 64, 201088, 128, 4, 2880, 0, 0, 117e9},
    {"gpt?oss?20b", 24, 2880, 2880, 64, 8, 64, 201088, 32, 4, 2880, 0, 0, 21e9},
    {"qwen3*30b", 48, 2048, 6144, 32, 4, 128, 151936, 128, 8, 768, 0, 0, 30.5e9},
    {"qwen3*235b", 94, 4096, 12288, 64, 4, 128, 151936, 128, 8, 1536, 0, 0, 235e9},
    {"nemotron?h*8b", 24, 4096, 21504, 104, 8, 128, 131072, 1, 1, 0, 0, 0, 8.1e9},
    {"nemotron?h*47b", 45, 8192, 30720, 224, 8, 128, 131072, 1, 1, 0, 0, 0, 47e9},
    {"nemotron?h*56b", 54, 8192, 32768, 232, 8, 128, 131072, 1, 1, 0, 0, 0, 56e9},
    {"nemotron*lightning*30b", 23, 2688, 7424, 64, 2, 128, 131072, 128, 6, 1856, 3712, 0, 31.6e9},
    {"nemotron*nano*30b", 23, 2688, 7424, 64, 2, 128, 131072, 128, 6, 1856, 3712, 0, 31.6e9},
    {"nemotron*super*120b", 40, 4096, 10688, 112, 2, 128, 131072, 512, 22, 2688, 5376, 0, 120e9,
     1024},
    {"nemotron*ultra*550b", 48, 8192, 21504, 200, 2, 128, 131072, 512, 22, 5120, 10752, 0, 550e9,
     2048},
    {"mixtral*8x7b", 32, 4096, 14336, 32, 8, 128, 32000, 8, 2, 14336, 0, 0, 46.7e9},
    {"mixtral*8x22b", 56, 6144, 16384, 48, 8, 128, 32768, 8, 2, 16384, 0, 0, 141e9},
    {"qwen2?5*72b", 80, 8192, 29568, 64, 8, 128, 152064, 1, 1, 0, 0, 0, 72.7e9},
    {"qwen2?5*32b", 64, 5120, 27648, 40, 8, 128, 152064, 1, 1, 0, 0, 0, 32.8e9},
    {"qwen2?5*14b", 48, 5120, 13824, 40, 8, 128, 152064, 1, 1, 0, 0, 0, 14.8e9},
    {"qwen2?5*7b", 28, 3584, 18944, 28, 4, 128, 152064, 1, 1, 0, 0, 0, 7.6e9},
    {"llama?3*405b", 126, 16384, 53248, 128, 8, 128, 128256, 1, 1, 0, 0, 0, 405.9e9},
    {"llama?3*70b", 80, 8192, 28672, 64, 8, 128, 128256, 1, 1, 0, 0, 0, 70.6e9},
    {"llama?3*8b", 32, 4096, 14336, 32, 8, 128, 128256, 1, 1, 0, 0, 0, 8.03e9},
    {"llama?2*70b", 80, 8192, 28672, 64, 8, 128, 32000, 1, 1, 0, 0, 0, 69e9},
    {"llama*13b", 40, 5120, 13824, 40, 40, 128, 32000, 1, 1, 0, 0, 0, 13e9},
    {"llama*7b", 32, 4096, 11008, 32, 32, 128, 32000, 1, 1, 0, 0, 0, 6.74e9},
}};

// Most of whose layers keep a state instead of attending; the registry has them as pairs.
bool is_hybrid(const RowFields& row) {
  return contains_any(row.attention, {"mamba", "ssm"}) || contains_like(row.model, "nemotron?h") ||
         (contains(row.model, "nemotron") &&
          contains_any(row.model, {"nano", "super", "ultra", "lightning"}));
}

const PublishedModel* published_model(std::string_view name) {
  const auto* at =
      std::find_if(kPublishedModels.begin(), kPublishedModels.end(),
                   [&](const PublishedModel& model) { return contains_like(name, model.name); });
  return at == kPublishedModels.end() ? nullptr : at;
}

// Parameters of attention in one layer; widths of its products follow.
double add_attention(std::string_view model, std::string_view attention, Shape& shape) {
  const double dim = shape.dim;
  const double heads = shape.heads;
  shape.qkv = (heads + 2 * shape.kv_heads) * shape.head_dim;
  shape.attention_out = heads * shape.head_dim;
  double parameters = dim * shape.qkv + shape.attention_out * dim;
  const bool latent = contains(attention, "mla") || contains_any(model, {"kimi"}) ||
                      contains_like(model, "deepseek?v2") || contains_like(model, "deepseek?v3");
  if (contains_like(model, "deepseek?v4")) {
    // Queries through 1024, one key of 512 that is the value as well, and the result through eight
    // groups of 1024.
    constexpr double kV4Rank = 1024;
    constexpr double kV4Head = 512;
    constexpr double kV4Groups = 8;
    shape.streams = 4;
    shape.head_dim = kV4Head;
    const double in = dim * kV4Rank + kV4Rank * heads * kV4Head + dim * kV4Head;
    const double out = heads * kV4Head * kV4Rank + kV4Groups * kV4Rank * dim;
    shape.qkv = kV4Rank + heads * kV4Head + kV4Head;
    shape.latent_qkv = in / dim;
    shape.attention_out = out / dim;
    return in + out;
  }
  if (latent) {  // queries through 1536, keys and values through 512 and 64 for positions
    constexpr double kQueries = 1536;
    constexpr double kKeys = 512;
    constexpr double kRotated = 64;
    constexpr double kLeastWidth = 4096;  // of models that do not make queries directly
    shape.head_dim = 160;                 // 192 for keys, 128 for values
    shape.attention_out = heads * 128;
    const double through = dim >= kLeastWidth ? kQueries : 0;
    const double queries = through > 0 ? dim * through + through * heads * 192 : dim * heads * 192;
    const double in = queries + dim * (kKeys + kRotated) + kKeys * heads * 256;
    shape.qkv = heads * (2 * 192 + 128) + through + kKeys + kRotated;
    shape.latent_qkv = in / dim;
    parameters = in + shape.attention_out * dim;
  }
  return parameters;
}

// Rows do not say whether an MLP is gated. Of a dense model the number of parameters does.
bool is_gated(std::string_view model, const Shape& shape, double attention,
              const std::optional<double>& parameters) {
  if (contains(model, "nemotron")) return false;
  if (contains_any(model, {"grok", "moonlight", "glm", "ling"})) return true;
  if (shape.is_moe() || !parameters) {
    return contains_any(model, {"llama", "qwen", "mistral", "mixtral", "moe", "deepseek", "kimi",
                                "oss", "gemma", "yi", "internlm", "olmo"}) ||
           shape.ffn < 3.6 * shape.dim;
  }
  if (contains_any(model, {"nanochat", "gpt", "mpt", "megatron", "turing"})) return false;
  const auto distance = [&](double matrices) {
    double least = HUGE_VAL;
    for (const double tables : {1.0, 2.0}) {
      const double all = shape.layers * (attention + matrices * shape.dim * shape.ffn) +
                         tables * shape.vocab * shape.dim;
      least = std::min(least, std::abs(std::log(all / *parameters)));
    }
    return least;
  };
  return distance(3) < distance(2);
}

// Heads of 128, as most models have them, that tensor parallelism can share.
double probable_heads(const RowFields& row, double dim) {
  const double tp = row.tp.value_or(1);
  return std::max({1.0, tp * std::nearbyint(dim / (128 * tp)), row.kv_heads.value_or(1), tp});
}

// What a row leaves out of its model when it says neither layers nor width, as add_by_size() has
// it.
// So many times what its layers have: a mixture that does not say so.
constexpr double kExpertsUnsaid = 5;
constexpr double kVocabulary = 50304;
constexpr double kPartOfModel = 0.7;
constexpr double kWidening = 4;

// Parameters of one layer of that width, whose other sizes are as the row says.
double layer_parameters(const RowFields& row, const Shape& known, double dim) {
  Shape shape = known;
  shape.dim = dim;
  shape.ffn = row.ffn.value_or(kWidening * dim);
  shape.heads = row.heads.value_or(probable_heads(row, dim));
  shape.kv_heads = row.kv_heads.value_or(shape.heads);
  shape.head_dim = dim / shape.heads;
  const double attention = add_attention(row.model, row.attention, shape);
  const double matrices = is_gated(row.model, shape, attention, std::nullopt) ? 3 : 2;
  const double width = shape.expert_ffn > 0 ? shape.expert_ffn : shape.ffn;
  return attention + matrices * dim * (shape.experts * width + shape.shared_ffn);
}

// A decoder of so many parameters: of the row's width or depth if it has one, else of a width that
// is 128 times its depth.
void add_by_size(double parameters, const RowFields& row, Shape& shape) {
  constexpr double kMostWidth = 1 << 20;
  const double step = row.heads ? 16 * *row.heads : 128;
  const double vocab = row.vocab.value_or(kVocabulary);
  const double tables = contains(row.model, "gpt") ? 1 : 2;
  const auto layers_of = [&](double dim) {
    const double body = std::max(parameters / 2, parameters - tables * vocab * dim);
    return body / layer_parameters(row, shape, dim);
  };
  // The wider, the fewer layers: how many of them there are for each that such a width needs.
  const auto excess = [&](double steps) {
    const double dim = step * steps;
    return row.layers.value_or(dim / 128) / layers_of(dim);
  };
  if (!row.dim) {
    double low = 1;
    double high = std::max(2.0, std::floor(kMostWidth / step));
    while (low < high) {
      const double middle = std::floor((low + high) / 2);
      if (excess(middle) >= 1)
        high = middle;
      else
        low = middle + 1;
    }
    if (low > 1 && excess(low) * excess(low - 1) > 1) --low;  // the nearer one
    shape.dim = step * low;
  }
  if (!row.layers)
    shape.layers = std::max(row.pp.value_or(1), std::nearbyint(layers_of(shape.dim)));
}

// Whether the row's own sizes leave room for the published ones.
bool may_be(const RowFields& row, const PublishedModel& known) {
  constexpr double kSameSize = 0.15;
  if (row.layers && *row.layers != known.layers) return false;
  if (row.dim && *row.dim != known.dim) return false;
  return !row.params || std::abs(*row.params / known.parameters - 1) < kSameSize;
}

}  // namespace

RowShape row_shape(const RowFields& row) {
  RowShape result;
  Shape& shape = result.shape;
  std::optional<double> parameters = row.params;
  std::optional<double> ffn = row.ffn;
  std::optional<double> heads = row.heads;
  std::optional<double> kv_heads = row.kv_heads;
  std::optional<double> vocab = row.vocab;
  std::optional<double> head_dim;
  double dense_layers = 0;
  shape.layers = row.layers.value_or(0);
  shape.dim = row.dim.value_or(0);
  if (row.experts && *row.experts > 1) {
    shape.experts = *row.experts;
    shape.experts_per_token = row.top_k.value_or(1);
    shape.expert_ffn = row.expert_ffn.value_or(0);
    shape.shared_ffn = row.shared_experts.value_or(0) * row.expert_ffn.value_or(0);
  } else if (const auto experts = experts_in(row.model + ' ' + row.lower_notes)) {
    shape.experts = experts->experts;
    shape.experts_per_token = experts->per_token;
  }
  // nanochat's models are called by their depth, and are 64 times as wide.
  const auto depth = number_after(row.model, "nanochat-d", true);
  if (depth && !row.layers && *depth >= 1) shape.layers = *depth;
  if (depth && !row.dim) shape.dim = 64 * shape.layers;
  const PublishedModel* known = published_model(row.model);
  const bool pairs = known != nullptr && is_hybrid(row);
  const bool sized = shape.layers > 0 && shape.dim > 0 && !pairs;
  if (sized && (!row.layers || !row.dim)) result.assumed = "shape: published for its name";
  if (known != nullptr && !sized && !pairs && !may_be(row, *known)) known = nullptr;
  if (known != nullptr) {
    if (!sized) {
      shape.layers = known->layers;
      shape.dim = known->dim;
      ffn = pairs ? known->ffn : row.ffn.value_or(known->ffn);
      heads = pairs ? known->heads : row.heads.value_or(known->heads);
      kv_heads = pairs ? known->kv_heads : row.kv_heads.value_or(known->kv_heads);
      vocab = row.vocab.value_or(known->vocab);
      result.assumed = "shape: as published";
    }
    if (!parameters) parameters = known->parameters;
    if (known->layers == shape.layers && known->dim == shape.dim) head_dim = known->head_dim;
    const bool same_experts = !row.experts || pairs;
    if (known->experts > 1 && same_experts) {
      shape.experts = known->experts;
      shape.experts_per_token = known->per_token;
      shape.expert_ffn = known->expert_ffn;
      shape.shared_ffn = known->shared_ffn;
      shape.expert_dim = known->expert_dim;
      dense_layers = known->dense_layers;
    }
  } else if (!sized) {
    if (!parameters) parameters = parameters_in(row.model);
    if (!parameters || *parameters <= 0) {
      result.reason = "layers, dim: missing, and neither params nor the model's name implies them";
      return result;
    }
    add_by_size(*parameters, row, shape);
    result.assumed = "shape: from the number of parameters";
  }
  shape.heads = heads.value_or(probable_heads(row, shape.dim));
  shape.kv_heads = kv_heads.value_or(shape.heads);
  shape.vocab = vocab.value_or(kVocabulary);
  shape.ffn = ffn.value_or(kWidening * shape.dim);
  // Models of these families have wider heads than their width has room for.
  if (!head_dim && contains_any(row.model, {"qwen3", "nemotron3", "llama4", "llama-4"}))
    head_dim = 128;
  if (!head_dim && contains_any(row.model, {"oss"})) head_dim = 64;
  if (!head_dim && contains(row.attention, "deltanet")) head_dim = 256;
  shape.head_dim = head_dim.value_or(shape.dim / shape.heads);
  if (shape.is_moe()) {
    if (shape.expert_ffn == 0) shape.expert_ffn = shape.ffn;
    shape.moe_layers = shape.layers - dense_layers;
    if (row.moe_layers && *row.moe_layers > 0 && !pairs)
      shape.moe_layers = std::min(shape.layers, *row.moe_layers);
  }
  if (shape.moe_layers < 0 || shape.experts < 1 || shape.experts_per_token < 1 ||
      shape.experts_per_token > shape.experts || shape.kv_heads > shape.heads) {
    result.reason = "model: layers, heads or experts that no model can have";
    return result;
  }
  // Tokens after the next one are predicted by further layers, each with the head.
  if (contains_any(row.lower_notes, {"mtp1", "1 mtp", "mtp 1"}) && !pairs) {
    ++shape.layers;
    ++shape.predictions;
    if (shape.is_moe()) ++shape.moe_layers;
  }
  if (row.heads && !head_dim && !contains(row.attention, "mla") && !row.experts &&
      std::fmod(shape.dim, shape.heads) != 0) {
    result.reason = fmt::format("heads: {} of a width of {}", shape.heads, shape.dim);
    return result;
  }
  // Routers of these models choose groups of experts first, each on a separate node.
  if (contains_like(row.model, "deepseek?v3")) shape.expert_groups = 4;
  if (contains_like(row.model, "deepseek?v2") && !contains(row.model, "lite"))
    shape.expert_groups = 3;
  if (contains_like(row.model, "gpt?oss")) {
    // Elements read and written: bias of the first product 4, two clamps 4, the gate's sigmoid 3,
    // and its product with the other half plus one 2; bias of the last product 3.
    shape.expert_passes = 13;
    shape.row_passes = 3;
  }
  const double attention = add_attention(row.model, row.attention, shape);
  shape.mlp_matrices = is_gated(row.model, shape, attention, parameters) ? 3 : 2;
  shape.tied = contains_any(row.model, {"gpt", "mpt", "megatron", "turing", "mt-nlg"}) &&
               !contains_any(row.model, {"oss", "nanochat"});
  const double matrix = shape.mlp_matrices * shape.dim;
  shape.body_parameters =
      shape.layers * attention + (shape.layers - shape.moe_layers) * matrix * shape.ffn +
      shape.moe_layers *
          (shape.mlp_matrices * shape.expert_width() * shape.experts * shape.expert_ffn +
           matrix * shape.shared_ffn);
  if (row.params && !shape.is_moe() && *row.params > kExpertsUnsaid * shape.body_parameters &&
      *row.params > kExpertsUnsaid * shape.vocab * shape.dim) {
    result.reason = fmt::format("params: {:.3g} where such layers have {:.3g}; experts not stated?",
                                *row.params, shape.body_parameters);
    return result;
  }
  const double counted = shape.body_parameters + shape.vocab * shape.dim * (shape.tied ? 1 : 2);
  shape.parameters = parameters.value_or(counted);
  // A part of a model's layers, run in its place, has the parameters of its layers.
  const bool fewer = known != nullptr && !pairs && row.layers && *row.layers < known->layers;
  if ((fewer || contains(row.lower_notes, "proxy")) && counted < kPartOfModel * shape.parameters)
    shape.parameters = counted;
  return result;
}

}  // namespace assay::plan
