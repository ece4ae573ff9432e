#include "spec/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "spec/enum_names.h"
#include "spec/job.h"
#include "spec/parameters.h"
#include "spec/presets.h"
#include "spec/rule_error.h"
#include "spec/schema.h"

namespace assay::spec {
namespace {

base::Result<void> check_heads(const ModelSpec& m, const RuleErrors& rule) {
  if (m.heads % m.kv_heads != 0) {
    return rule.broken("model.kv_heads",
                       fmt::format("{} heads cannot share {} kv_heads evenly", m.heads, m.kv_heads),
                       "make heads a multiple of kv_heads");
  }
  for (const char* key : {"model.rope_theta", "model.rope_factor"}) {
    if (m.positions != Positions::kLearned || !rule.written(key)) continue;
    return rule.broken(key, "applies to rotary positions, but positions are learned",
                       "remove it or set model.positions to \"rope\"");
  }
  for (const char* key : {"model.rope_low", "model.rope_high", "model.rope_context"}) {
    if (m.rope_factor != 1 || !rule.written(key)) continue;
    return rule.broken(key, "applies to scaled rotary positions, but rope_factor is 1",
                       "remove it or set model.rope_factor");
  }
  if (m.rope_low >= m.rope_high) {
    return rule.broken(
        rule.written("model.rope_low") ? "model.rope_low" : "model.rope_high",
        fmt::format("low frequencies have up to {} turns and high ones at least {}, which overlap",
                    m.rope_low, m.rope_high),
        "make rope_low less than rope_high");
  }
  if (m.positions == Positions::kRope && m.head_dim % 2 != 0) {
    return rule.broken(
        "model.head_dim",
        fmt::format("rotary positions need an even width of head, got {}", m.head_dim),
        "change dim, heads or head_dim");
  }
  return {};
}

// Latent attention says how wide its heads are; other attention has none of its widths.
base::Result<void> complete_latent(ModelSpec& m, const RuleErrors& rule) {
  if (!m.has_latent_attention()) {
    // 0 means the same: a checkpoint's spec has every key.
    const std::pair<const char*, std::int64_t> none[] = {{"q_lora_rank", m.q_lora_rank},
                                                         {"qk_nope_head_dim", m.qk_nope_head_dim},
                                                         {"qk_rope_head_dim", m.qk_rope_head_dim},
                                                         {"v_head_dim", m.v_head_dim}};
    for (const auto& [key, value] : none) {
      if (value == 0) continue;
      return rule.broken(fmt::format("model.{}", key),
                         "applies to latent attention, but kv_lora_rank is 0",
                         "remove it or set model.kv_lora_rank");
    }
    return {};
  }
  const std::pair<const char*, std::int64_t> widths[] = {{"qk_nope_head_dim", m.qk_nope_head_dim},
                                                         {"qk_rope_head_dim", m.qk_rope_head_dim},
                                                         {"v_head_dim", m.v_head_dim}};
  for (const auto& [key, width] : widths) {
    if (width > 0) continue;
    return rule.broken("model.kv_lora_rank",
                       fmt::format("latent attention, but {} is not set", key),
                       fmt::format("set model.{}", key));
  }
  const std::int64_t width = m.qk_nope_head_dim + m.qk_rope_head_dim;
  if (m.head_dim != 0 && m.head_dim != width) {
    return rule.broken("model.head_dim",
                       fmt::format("{}, but latent attention's keys have {} + {}", m.head_dim,
                                   m.qk_nope_head_dim, m.qk_rope_head_dim),
                       "remove it");
  }
  m.head_dim = width;
  if (m.kv_heads != m.heads) {
    return rule.broken("model.kv_heads", "latent attention has keys for every head", "remove it");
  }
  if (m.bias || m.qkv_bias) {
    return rule.broken(m.bias ? "model.bias" : "model.qkv_bias", "latent attention has no biases",
                       "remove it");
  }
  if (m.qk_norm != QkNorm::kNone) {
    return rule.broken("model.qk_norm", "latent attention has its own norms", "remove it");
  }
  return {};
}

base::Result<void> check_experts(const ModelSpec& m, const RuleErrors& rule) {
  if (m.experts == 0 && m.experts_per_token > 0) {
    return rule.broken(
        "model.experts_per_token",
        fmt::format("{} experts per token, but the model has no experts", m.experts_per_token),
        "set model.experts");
  }
  if (m.experts > 0 && m.experts_per_token == 0) {
    return rule.broken("model.experts",
                       fmt::format("{} experts, but the number per token is not set", m.experts),
                       "set model.experts_per_token");
  }
  if (m.experts_per_token > m.experts) {
    return rule.broken(
        "model.experts_per_token",
        fmt::format("{} experts per token, but there are only {}", m.experts_per_token, m.experts));
  }
  for (const char* key : {"expert_ffn", "shared_ffn", "dense_layers", "router", "router_groups",
                          "normalise_router", "router_scale"}) {
    const std::string name = fmt::format("model.{}", key);
    if (m.experts > 0 || !rule.written(name)) continue;
    return rule.broken(name, "applies to mixtures of experts, but there are no experts",
                       "remove it or set model.experts");
  }
  if (m.router_groups > m.experts) {
    return rule.broken(
        "model.router_groups",
        fmt::format("{} groups, but there are only {} experts", m.router_groups, m.experts));
  }
  if (m.experts == 0 && rule.written("model.moe_every")) {
    return rule.broken("model.moe_every",
                       "sets which layers are mixtures, but there are no experts",
                       "remove it or set model.experts");
  }
  if (m.experts == 0 && rule.written("model.capacity")) {
    return rule.broken("model.capacity", "applies to experts, but there are none",
                       "remove it or set model.experts");
  }
  if (m.moe_every > m.layers) {
    return rule.broken("model.moe_every",
                       fmt::format("every {}th layer is a mixture, but there are only {} layers",
                                   m.moe_every, m.layers));
  }
  if (m.is_moe() && m.moe_layers() == 0) {
    return rule.broken("model.dense_layers",
                       fmt::format("leaves no mixture among {} layers", m.layers),
                       "choose fewer, or remove model.experts");
  }
  return {};
}

base::Result<void> check_batch(const JobSpec& job, const RuleErrors& rule) {
  if (job.batch.sequence > job.model.context) {
    return rule.broken("batch.sequence",
                       fmt::format("{} tokens are more than the model's context of {}",
                                   job.batch.sequence, job.model.context),
                       "shorten it or raise model.context");
  }
  const auto tokens = checked_product(
      {job.batch.sequence, job.batch.micro_batch, job.batch.accumulate, job.layout.data_ranks()});
  if (!tokens || static_cast<double>(*tokens) > kMostStepTokens) {
    return rule.broken("batch", "more than 10^12 tokens per step",
                       "lower sequence, micro_batch or accumulate");
  }
  if (!fills_pipeline(job.layout, job.batch)) {
    return rule.broken("batch.accumulate",
                       fmt::format("stages of {} chunks take {} micro-batches in turn, which do "
                                   "not divide {}",
                                   job.layout.pp_chunks, job.layout.pp, job.batch.accumulate),
                       "choose a multiple of layout.pp, or another pp_schedule");
  }
  return {};
}

// Checks that the length of training, given by `key`, is a countable number of steps.
base::Result<void> check_length(long double tokens, const JobSpec& job, const char* key,
                                const RuleErrors& rule) {
  if (tokens > static_cast<long double>(kMostTokens)) {
    return rule.broken(key, "more than 10^17 tokens of training", "lower it");
  }
  if (tokens < static_cast<long double>(job.tokens_per_step())) {
    return rule.broken(
        key,
        fmt::format("shorter than one step of {} tokens", base::grouped(job.tokens_per_step())),
        "raise it or make the batch smaller");
  }
  return {};
}

base::Result<void> check_lengths(const JobSpec& job, const RuleErrors& rule) {
  const TrainSpec& train = job.train;
  if (train.steps) {
    const auto tokens =
        static_cast<long double>(*train.steps) * static_cast<long double>(job.tokens_per_step());
    return check_length(tokens, job, "train.steps", rule);
  }
  if (train.tokens) {
    return check_length(static_cast<long double>(*train.tokens), job, "train.tokens", rule);
  }
  if (train.tokens_per_matmul_parameter) {
    const auto tokens = static_cast<long double>(*train.tokens_per_matmul_parameter) *
                        static_cast<long double>(parameters_of(job.model).matmul);
    return check_length(tokens, job, "train.tokens_per_matmul_parameter", rule);
  }
  return {};
}

base::Result<void> check_train(const JobSpec& job, const RuleErrors& rule) {
  const TrainSpec& train = job.train;
  const int lengths = static_cast<int>(train.steps.has_value()) +
                      static_cast<int>(train.tokens.has_value()) +
                      static_cast<int>(train.tokens_per_matmul_parameter.has_value());
  if (lengths > 1) {
    return rule.broken("train", "the training length is given more than once",
                       "keep one of steps, tokens, tokens_per_matmul_parameter");
  }
  ASSAY_TRY_VOID(check_lengths(job, rule));
  if (job.cluster.device.kind == DeviceKind::kCpu && train.precision != Precision::kFp32) {
    return rule.broken("train.precision",
                       fmt::format("a CPU trains in fp32, not {}", to_text(train.precision)),
                       "set train.precision to \"fp32\"");
  }
  if (has_fewer_bits(train.precision) && !job.cluster.device.fp8) {
    return rule.broken("train.precision",
                       fmt::format("'{}' has no fp8 rate", job.cluster.device.name),
                       "use bf16, or a device with fp8");
  }
  if (job.data.mix) {
    if (job.data.train) {
      return rule.broken("data.mix", "data.train is set, too", "set one of them");
    }
    if (const auto parts = parse_mix(*job.data.mix); !parts) {
      return rule.broken("data.mix", parts.error().what, parts.error().hint);
    }
  }
  if (job.data.pack == Packing::kDocuments && job.data.type) {
    return rule.broken("data.pack", "files without a header do not say where documents begin",
                       "tokenize with `assay data tokenize`, or leave data.pack out");
  }
  if (job.data.mask == Mask::kDocument && job.data.type) {
    return rule.broken("data.mask", "files without a header do not say where documents begin",
                       "tokenize with `assay data tokenize`, or leave data.mask out");
  }
  if (train.validate_every > 0 && !job.data.validation) {
    return rule.broken("train.validate_every", "there is nothing to validate on",
                       "set data.validation to a token shard or a folder of them");
  }
  return {};
}

// Llama 3 8B.
constexpr double kRate = 3e-4;
constexpr double kWidth = 4096;

// Two significant digits: more would suggest a precision that nobody intends.
double two_digits(double rate) {
  const double digits = std::pow(10.0, 1 - std::floor(std::log10(rate)));
  return std::round(rate * digits) / digits;
}

// Models up to this width were measured (docs/train.md); published runs are of wider ones.
constexpr double kMeasured = 512;
constexpr double kHighestRate = 1e-2;

// The fastest safe increase of the learning rate per step: 3e-4 in 2,000 steps for a width of
// 4,096, which is the fastest that Llama 2 and 3 used, inversely proportional to the width. Adam's
// first steps move all weights by the full rate in one direction, so the loss of a wide and deep
// model jumps if the rate rises faster. Small models bear any rate at once.
double usual_rise(std::int64_t dim) {
  constexpr double kSteps = 2000;
  const auto width = static_cast<double>(dim);
  return width <= kMeasured ? kHighestRate : kRate / kSteps * kWidth / width;
}

// The tokens of a step below which the usual rate does not fall any more. In small models the best
// rate of small batches hardly depends on their size; in wider ones, of which small batches were
// not measured, the bound soon has no effect.
double fewest_tokens(std::int64_t dim) {
  constexpr double kTokens = 262'144;
  const double wider = std::max(1.0, static_cast<double>(dim) / kMeasured);
  return kTokens / (wider * wider);
}

// Fills in learning rate and warm-up if the job does not set them.
void complete_recipe(JobSpec& job, const Value& document) {
  TrainSpec& train = job.train;
  const bool rate_is_set = document.at("train.learning_rate") != nullptr;
  train.learning_rate_is_usual = !rate_is_set;
  if (!rate_is_set) train.learning_rate = usual_learning_rate(job.model.dim, job.tokens_per_step());
  const auto steps = training_steps(job);
  if (!steps) return;
  train.warmup_is_usual = document.at("train.warmup_steps") == nullptr;
  if (train.warmup_is_usual) {
    train.warmup_steps = usual_warmup(job.model.dim, train.learning_rate, *steps);
  }
  if (rate_is_set || train.warmup_steps == 0) return;
  const double reached =
      usual_rise(job.model.dim) * static_cast<double>(std::min(train.warmup_steps, *steps));
  if (reached < train.learning_rate) train.learning_rate = two_digits(reached);
}

}  // namespace

bool fills_pipeline(const LayoutSpec& layout, const BatchSpec& batch) {
  return layout.pp_chunks == 1 || batch.accumulate % layout.pp == 0;
}

base::Result<void> complete(ModelSpec& m, const Value& document) {
  const RuleErrors rule(document);
  if (m.kv_heads == 0) m.kv_heads = m.heads;
  ASSAY_TRY_VOID(complete_latent(m, rule));
  if (m.head_dim == 0) {
    if (m.dim % m.heads != 0) {
      return rule.broken("model.heads",
                         fmt::format("dim {} is not a multiple of {} heads", m.dim, m.heads),
                         "change one of them or set model.head_dim");
    }
    m.head_dim = m.dim / m.heads;
  }
  ASSAY_TRY_VOID(check_heads(m, rule));
  ASSAY_TRY_VOID(check_experts(m, rule));
  if (auto counted = count_parameters(m); !counted) {
    return rule.broken("model", counted.error().what, counted.error().hint);
  }
  return {};
}

double usual_learning_rate(std::int64_t dim, std::int64_t tokens_per_step) {
  constexpr double kTokens = 4'194'304;
  if (dim <= 0 || tokens_per_step <= 0) return kRate;
  const double tokens = std::max(static_cast<double>(tokens_per_step), fewest_tokens(dim));
  const double rate = kRate * kWidth / static_cast<double>(dim) * std::sqrt(tokens / kTokens);
  return std::min(kHighestRate, two_digits(rate));
}

std::int64_t usual_warmup(std::int64_t dim, double rate, std::int64_t steps) {
  constexpr std::int64_t kLong = 2000;
  const auto rising = static_cast<std::int64_t>(std::ceil(rate / usual_rise(dim)));
  const std::int64_t least = std::min(kLong, steps / 10);
  return std::clamp<std::int64_t>(std::max(rising, least), 1, std::max<std::int64_t>(1, steps / 3));
}

base::Result<void> complete(JobSpec& job, const Value& document, const LayoutAdvice& advice,
                            bool ranks_from_layout) {
  ASSAY_TRY_VOID(complete(job.model, document));
  ASSAY_TRY_VOID(complete(job.cluster, document));
  if (job.batch.sequence == 0) job.batch.sequence = job.model.context;
  if (auto possible = complete_layout(job, document, ranks_from_layout); !possible) {
    if (advice) possible.error().hint = advice(job);
    return possible;
  }
  const bool cpu = job.cluster.device.kind == DeviceKind::kCpu;
  if (cpu && document.at("train.precision") == nullptr) job.train.precision = Precision::kFp32;
  // A sigmoid router is balanced by its bias.
  if (job.model.router == Router::kSigmoid) {
    if (document.at("train.balance_loss") == nullptr) job.train.balance_loss = 0;
    if (document.at("train.router_z_loss") == nullptr) job.train.router_z_loss = 0;
  }
  const RuleErrors rule(document);
  ASSAY_TRY_VOID(check_batch(job, rule));
  ASSAY_TRY_VOID(check_train(job, rule));
  complete_recipe(job, document);
  return {};
}

}  // namespace assay::spec
