#include "plan/work_of_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "plan/exchange/communication.h"
#include "plan/exchange/sharded_muon.h"
#include "plan/model/cards.h"
#include "plan/model/cluster_links.h"
#include "plan/model/release.h"
#include "plan/model/trainer_step.h"
#include "plan/trainer_rules.h"
#include "spec/enum_names.h"
#include "spec/parameters.h"
#include "step/shapes.h"
#include "step/units.h"

namespace assay::plan {
namespace {

// Three layers of four look back over half a sequence.
constexpr double kNanochatWindow = 0.5;
constexpr double kNanochatWindowed = 0.75;
// Of two bytes each: products with rows that are no multiple of 16 bytes are slow.
constexpr std::int64_t kAlignedElements = 8;

double as_real(std::int64_t value) {
  return static_cast<double>(value);
}

// All products before attention as one, and heads of the mean of keys' and values' widths, as rows
// have it (docs/plan-model.md, 2.3).
void add_latent_attention(const spec::ModelSpec& m, Shape& s) {
  const double heads = as_real(m.heads);
  const double queries = m.q_lora_rank > 0
                             ? as_real(m.q_lora_rank) * (s.dim + heads * as_real(m.head_dim))
                             : s.dim * heads * as_real(m.head_dim);
  const double keys = s.dim * as_real(m.kv_lora_rank + m.qk_rope_head_dim) +
                      as_real(m.kv_lora_rank) * heads * as_real(m.qk_nope_head_dim + m.v_head_dim);
  s.latent_qkv = (queries + keys) / s.dim;
  s.qkv = heads * as_real(2 * m.head_dim + m.v_head_dim) +
          as_real(m.q_lora_rank + m.kv_lora_rank + m.qk_rope_head_dim);
  s.head_dim = as_real(m.head_dim + m.v_head_dim) / 2;
  s.attention_out = heads * as_real(m.v_head_dim);
}

Shape shape_of(const spec::ModelSpec& m, Framework framework, std::int64_t sequence) {
  Shape s;
  s.layers = as_real(m.layers);
  s.dim = as_real(m.dim);
  s.heads = as_real(m.heads);
  s.kv_heads = as_real(m.kv_heads);
  s.head_dim = as_real(m.head_dim);
  s.ffn = as_real(m.ffn);
  s.mlp_matrices = m.is_gated() ? 3 : 2;
  s.vocab = as_real(m.vocab);
  s.tied = m.tied;
  s.ragged_vocab = !pads_vocabulary(framework) && m.vocab % kAlignedElements != 0;
  if (framework == Framework::kAssay) {  // which rounds it up
    s.vocab = as_real(step::padded_rows(m.vocab));
    s.ragged_vocab = false;
  }
  s.attention_out = as_real(m.q_dim());
  if (m.has_latent_attention()) add_latent_attention(m, s);
  s.norm_block = as_real(step::norm_block(m));
  if (framework == Framework::kNanochat) {
    s.window = kNanochatWindow * as_real(sequence);
    s.windowed_share = kNanochatWindowed;
  }
  if (m.is_moe()) {
    s.experts = as_real(m.experts);
    s.experts_per_token = as_real(m.experts_per_token);
    if (m.capacity > 0) s.capacity = m.capacity;
    if (framework == Framework::kAssay && m.capacity > 0) {  // which computes what comes
      s.most_load = m.capacity;
      s.capacity = std::min(1.0, m.capacity);
    }
    s.expert_ffn = as_real(m.expert_width());
    s.shared_ffn = as_real(m.shared_ffn);
    s.moe_layers = as_real(m.moe_layers());
    s.expert_groups = as_real(m.router_groups);
  }
  const spec::Parameters parameters = spec::parameters_of(m);
  s.parameters = as_real(parameters.total);
  for (const spec::ParameterGroup& group : parameters.groups) {
    const bool body = group.role == spec::Role::kMatrix || group.role == spec::Role::kVector;
    if (body) s.body_parameters += as_real(group.parameters());
  }
  return s;
}

template <class Quantity>
base::Result<Quantity> known(const std::optional<Quantity>& value, const char* key,
                             const spec::DeviceSpec& device) {
  if (value) return *value;
  return base::fail(
      base::usage_error(key, fmt::format("not known for '{}'", device.name), "set it"));
}

// The device's own figures, and from its data sheet what specs do not have.
base::Result<Card> card_of_device(const spec::DeviceSpec& device, spec::Precision precision) {
  if (device.kind == spec::DeviceKind::kCpu) {
    return base::fail(base::usage_error("cluster.device.kind",
                                        "step times are predicted for GPUs, not for CPUs",
                                        "name a cluster with GPUs: assay presets list clusters"));
  }
  const std::optional<Card> sheet = card_of(device.name);
  if (!sheet) {
    return base::fail(base::usage_error(
        "cluster.device.name", fmt::format("no data sheet is known for '{}'", device.name),
        "name the card that is most like it, such as \"NVIDIA H100 80GB HBM3\""));
  }
  Card card = *sheet;
  ASSAY_TRY(card.bf16_flops, known(device.bf16, "cluster.device.bf16", device));
  card.fp8_flops = device.fp8.value_or(card.bf16_flops);
  if (precision == spec::Precision::kFp16 && device.fp16) card.bf16_flops = *device.fp16;
  ASSAY_TRY(card.memory_rate,
            known(device.memory_bandwidth, "cluster.device.memory_bandwidth", device));
  ASSAY_TRY(card.memory, known(device.memory, "cluster.device.memory", device));
  card.watts = device.power.value_or(card.watts);
  return card;
}

base::Result<void> check_precision_on(const spec::JobSpec& job, Framework framework,
                                      const Card& card) {
  const spec::Precision precision = job.train.precision;
  const auto refused = [&](const std::string& what, const char* hint) {
    return base::fail(base::usage_error("train.precision", what, hint));
  };
  if (precision == spec::Precision::kFp32) {
    return refused("step times are predicted for bf16, fp16, fp8, mxfp8 and nvfp4, not fp32",
                   "set train.precision to \"bf16\"");
  }
  if (!spec::has_block_scales(precision)) return {};
  const bool nvfp4 = precision == spec::Precision::kNvfp4;
  if (!has_block_scales(card, nvfp4)) {
    return refused(
        fmt::format("'{}' has no {}", job.cluster.device.name, spec::to_text(precision)),
        card.fp8_flops > card.bf16_flops ? "set it to \"fp8\" or \"bf16\"" : "set it to \"bf16\"");
  }
  if (!has_precision(framework, nvfp4)) {
    return refused(fmt::format("{} has no {}", to_text(framework), spec::to_text(precision)),
                   "set it to \"fp8\" or \"bf16\", or name software that has it: megatron-core");
  }
  return {};
}

}  // namespace

base::Result<void> check_precision(const spec::JobSpec& job, Framework framework) {
  const auto card = card_of_device(job.cluster.device, job.train.precision);
  return card ? check_precision_on(job, framework, *card) : base::Result<void>();
}

Framework framework_of(const spec::JobSpec& job, const Assumed& assumed) {
  const bool nanochat = job.model.value_embeddings || job.model.residual_lambdas;
  return assumed.framework.value_or(nanochat ? Framework::kNanochat : Framework::kAssay);
}

double usual_imbalance(Framework framework) {
  constexpr double kOfOurTrainer = 1.2;
  return framework == Framework::kAssay ? kOfOurTrainer : 1;
}

double load_of_fullest_rank(double imbalance, double experts, double ranks, double capacity) {
  const double own = experts / ranks;
  if (ranks <= 1 || experts <= 1 || own < 1) return 1;
  const double most = capacity > 0 ? std::min(capacity, experts) : experts;
  const double fullest = std::clamp(imbalance, 1.0, std::max(1.0, most));
  return (fullest + (own - 1) * (experts - fullest) / (experts - 1)) / own;
}

base::Result<Work> work_of(const spec::JobSpec& job, const Assumed& assumed) {
  const Framework framework = framework_of(job, assumed);
  Work work;
  ASSAY_TRY(work.card, card_of_device(job.cluster.device, job.train.precision));
  ASSAY_TRY_VOID(check_precision_on(job, framework, work.card));
  work.shape = shape_of(job.model, framework, job.batch.sequence);
  ASSAY_TRY(work.links, links_of(job.cluster));
  work.software = software_of(framework, work.card);
  const Release newest{.date = kNewestRelease,
                       .bf16 = job.train.precision != spec::Precision::kFp16,
                       .quantised = spec::has_fewer_bits(job.train.precision)};
  make_earlier(newest, work.card, work.software);
  add_release(newest, work.shape.is_moe(), work.card, work.software);
  work.recompute = recompute_of(job.train.recompute, framework);
  work.fp8 = spec::has_fewer_bits(job.train.precision);
  work.fp4 = job.train.precision == spec::Precision::kNvfp4;
  work.muon = job.train.optimizer == spec::Optimizer::kMuon;
  work.deterministic = job.train.deterministic;
  work.imbalance = assumed.imbalance.value_or(usual_imbalance(framework));
  if (TrainerRules(job, framework).apply()) {
    work.trainer = std::make_shared<TrainerSteps>(job.model);
  }
  spread(work, job.layout, job.batch);
  ASSAY_TRY(work.muon_exchange, muon_exchange_of(job));
  return work;
}

base::Result<MuonExchange> muon_exchange_of(const spec::JobSpec& job) {
  if (!is_sharded_muon(job)) return MuonExchange{.stacked = false};
  ASSAY_TRY(const Communication table, communication_of(job));
  MuonExchange muon;
  muon.bytes = as_real(table.bytes().total()) / as_real(spec::parameters_of(job.model).total);
  muon.calls = 0;
  for (const Exchange& exchange : table.exchanges) muon.calls += as_real(exchange.calls);
  return muon;
}

spec::LayoutSpec layout_run_by(Framework framework, const spec::LayoutSpec& layout) {
  using enum spec::PipelineSchedule;
  spec::LayoutSpec run = layout;
  const bool missing = (layout.pp_schedule == kZbH1 && !has_zero_bubble(framework)) ||
                       (layout.pp_schedule == kInterleaved && !has_interleaving(framework));
  if (missing) run.pp_schedule = k1f1b, run.pp_chunks = 1;
  return run;
}

void spread(Work& work, const spec::LayoutSpec& layout, const spec::BatchSpec& batch) {
  // Only ZeRO-3 gathers parameters; with less of it, ranks of fsdp are replicas that share the
  // optimizer's work.
  // Ranks with different experts divide the rest of the state like those of fsdp: our trainer's in
  // any case, and others' where there is FSDP, whose ranks are then all that read different tokens
  // or share a sequence. Our trainer's ranks that share one are replicas. Without FSDP, ranks with
  // different experts are replicas of the rest.
  const bool folds = work.software.framework == Framework::kAssay;
  const bool sharded =
      layout.fsdp > 1 || (always_shards(work.software.framework) && layout.ep * layout.cp > 1);
  const std::int64_t of_experts = folds || sharded ? layout.ep : 1;
  const std::int64_t of_contexts = sharded && !folds ? layout.cp : 1;
  const std::int64_t shards_of_state = layout.fsdp * of_experts * of_contexts;
  const bool gathers = shards_of_state > 1 && layout.zero == 3;
  const std::int64_t replicas = layout.dp * layout.ep / of_experts;
  Degrees& d = work.degrees;
  d.dp = as_real(gathers ? replicas : replicas * layout.fsdp * of_experts);
  d.fsdp = as_real(gathers ? shards_of_state : 1);
  d.tp = as_real(layout.tp);
  d.pp = as_real(layout.pp);
  d.cp = as_real(layout.cp);
  d.ep = as_real(layout.ep);
  d.ep_axis = false;
  d.cp_shards = of_contexts > 1;
  d.units = gathers && layout.unit == spec::ShardUnit::kModule ? 2 : 1;
  const spec::LayoutSpec run = layout_run_by(work.software.framework, layout);
  d.chunks = as_real(run.pp_chunks);
  d.gpipe = run.pp_schedule == spec::PipelineSchedule::kGpipe;
  d.zero_bubble = run.pp_schedule == spec::PipelineSchedule::kZbH1;
  // PyTorch's trainers cut sequences wherever they cut layers.
  const bool torch = work.software.framework == Framework::kTorch ||
                     work.software.framework == Framework::kTorchCompiled;
  d.sequence_parallel = layout.sequence_parallel || (torch && layout.tp > 1);
  d.experts_cut =
      is_megatron_core(work.software.framework) && work.shape.is_moe() && d.tp > 1 && d.ep == 1;
  d.ranks = as_real(layout.dp * layout.inner_ranks());
  // Replicas alone share what the framework lets them share.
  d.state_shards = 0;
  d.gradient_shards = 0;
  if (sharded || folds) {
    const double shards = as_real(gathers ? 1 : shards_of_state);
    d.state_shards = shards;
    d.gradient_shards = layout.zero >= 2 ? shards : 1;
  }
  // Software that computes a whole capacity computes it whatever comes.
  const bool whole_capacity = work.shape.capacity != 1 && !folds;
  d.expert_load = whole_capacity ? 1
                                 : load_of_fullest_rank(work.imbalance, work.shape.experts, d.ep,
                                                        work.shape.most_load);
  work.batch = {.sequence = as_real(batch.sequence),
                .micro_batch = as_real(batch.micro_batch),
                .micros = as_real(batch.accumulate)};
  // With fewer key heads than tensor-parallel ranks, ranks keep copies (step/shapes.h).
  Shape& s = work.shape;
  if (s.latent_qkv <= 0) s.qkv = (s.heads + 2 * std::max(s.kv_heads, d.tp)) * s.head_dim;
}

}  // namespace assay::plan
