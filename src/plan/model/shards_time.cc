#include "plan/model/shards_time.h"

#include <algorithm>

#include "plan/model/exchange_time.h"

namespace assay::plan {
namespace {

using step::CollectiveKind;

constexpr double kTensorsPerLayer = 12;  // that ZeRO-3 of 2021 gathers one by one
constexpr double kEndsExposed = 0.5;     // of the first and last gather
constexpr double kGradientBuckets = 20;
constexpr double kLoraShare = 0.003;  // of the model's parameters, in adapters

// Sharded Muon with AdamW: bytes per parameter that pass a rank in a step, reduced and gathered,
// and in how many calls; 11.46 GB of nanochat's d26.
constexpr double kMuonBytes = 11.46 / 1.68;
constexpr double kMuonCalls = 40;
// Newton-Schulz: flops per parameter and element of a matrix's width, of five iterations, and the
// rate that its products reach.
constexpr double kMuonFlops = 40.0 / 12;
constexpr double kMuonRate = 0.6;

// Ranks that hold the same expert, of those that hold the same dense layer.
double expert_replicas(const Degrees& degrees, double ranks) {
  return degrees.ep_axis ? ranks : std::max(1.0, ranks / degrees.ep);
}

// Gradients reduced and weights gathered, or gradients summed, in buckets.
double replicas_seconds(const Work& work, double parameters, const Axis& replicas,
                        const Constants& constants) {
  const auto seconds = [&](CollectiveKind kind, double bytes) {
    return kGradientBuckets * exchange_seconds(kind, bytes * parameters / kGradientBuckets,
                                               replicas, work.links, constants);
  };
  const double gradient = work.software.gradient_bytes;
  if (!work.software.shards_optimizer) return seconds(CollectiveKind::kAllReduce, gradient);
  return seconds(CollectiveKind::kReduceScatter, gradient) + seconds(CollectiveKind::kAllGather, 2);
}

}  // namespace

ShardsTime shards_time(const Work& work, const RankShare& rank, double forward, double backward,
                       const Constants& constants) {
  const Degrees& degrees = work.degrees;
  const Software& software = work.software;
  const double n = degrees.fsdp;
  if (n <= 1) return {};
  const double apart = degrees.tp * degrees.cp * (degrees.ep_axis ? degrees.ep : 1);
  const bool exposed = software.zero3_by_tensor || rank.naive_experts;
  const double calls = software.zero3_by_tensor ? kTensorsPerLayer : degrees.units;
  const auto seconds = [&](CollectiveKind kind, double bytes) {
    return calls * exchange_seconds(kind, bytes / calls, {n, apart}, work.links, constants,
                                    exposed ? constants.zero3_bw : 1);
  };

  const double holders = expert_replicas(degrees, n);
  const double dense = work.shape.body_parameters / work.shape.layers - rank.expert_parameters;
  // As many bytes of experts as would be sent among all n, though fewer ranks hold the same ones.
  const double experts =
      rank.expert_parameters / rank.expert_cut / degrees.ep * (holders - 1) / holders * n / (n - 1);
  const double unit = dense / degrees.tp + experts;
  const double gather = seconds(CollectiveKind::kAllGather, 2 * unit);
  const double reduce =
      rank.trained ? seconds(CollectiveKind::kReduceScatter, software.gradient_bytes * unit) : 0;
  const auto unhidden = [&](double compute, double exchange) {
    if (exposed) return exchange;
    return std::max(0.0, exchange - compute) + constants.fsdp_slow * std::min(compute, exchange);
  };
  const double end_bytes = 4 + (rank.trained ? software.gradient_bytes : 0);
  const double ends = end_bytes * work.shape.vocab * work.shape.dim / degrees.tp;
  return {.forward = unhidden(forward, gather),
          .backward = unhidden(backward, (software.gathers_once ? 0 : gather) + reduce),
          .ends = kEndsExposed * seconds(CollectiveKind::kAllGather, ends)};
}

double trained_parameters(const Work& work, const RankShare& rank) {
  const Shape& shape = work.shape;
  const Degrees& degrees = work.degrees;
  const double experts = rank.expert_parameters * shape.layers;
  const double untied = shape.tied ? 1 : 2;
  const double held = (shape.body_parameters - experts) / degrees.tp / degrees.pp +
                      experts / rank.expert_cut / degrees.pp / degrees.ep +
                      // Of a pipeline's stages the first and the last have one table each.
                      shape.vocab * shape.dim / degrees.tp * (degrees.pp > 1 ? 0.6 : untied);
  if (work.lora) return kLoraShare * held;
  return work.muon ? shape.parameters / degrees.tp / degrees.pp : held;
}

double gradients_seconds(const Work& work, const RankShare& rank, double parameters,
                         double backward, const Constants& constants) {
  const Degrees& degrees = work.degrees;
  const Software& software = work.software;
  // Ranks of an axis of experts read tokens of their own and have the same dense layers.
  const double same_experts = degrees.dp * degrees.cp;
  const double n = same_experts * (degrees.ep_axis ? degrees.ep : 1);
  if (n <= 1) return 0;
  // Replicas of shards reduce a shard each, and the shards lie between them.
  parameters /= degrees.fsdp;
  const double apart = degrees.tp * (degrees.dp > 1 ? degrees.fsdp : 1);
  const Axis replicas{n, apart};
  double seconds = 0;
  if (work.muon) {  // reducing costs what gathering does
    seconds = kMuonCalls * exchange_seconds(CollectiveKind::kAllGather,
                                            kMuonBytes * parameters / kMuonCalls, replicas,
                                            work.links, constants);
  } else {
    const double experts = degrees.ep > 1 && rank.trained
                               ? rank.expert_parameters * work.shape.layers / rank.expert_cut /
                                     degrees.pp / degrees.ep / degrees.fsdp
                               : 0;
    seconds = replicas_seconds(work, std::max(0.0, parameters - experts), replicas, constants);
    if (experts > 0) {
      const Axis holders{expert_replicas(degrees, same_experts), apart * degrees.ep};
      seconds += replicas_seconds(work, experts, holders, constants);
    }
  }
  if (!software.overlaps_gradients) return seconds;
  return (1 - constants.dp_overlap) * seconds +
         std::max(0.0, constants.dp_overlap * seconds - backward);
}

double optimizer_seconds(const Work& work, const RankShare& rank, double parameters,
                         const Constants& constants) {
  const Degrees& degrees = work.degrees;
  const double replicas = state_shards(work);
  const double shard = parameters / replicas / degrees.fsdp;
  double seconds = shard * constants.opt_bytes * work.software.optimizer_traffic / rank.memory_rate;
  if (work.muon && rank.trained) {
    const double ranks = replicas * degrees.fsdp * degrees.tp * degrees.pp;
    const double flops = kMuonFlops * work.shape.body_parameters * work.shape.dim / ranks;
    const double clock = sustained_clock(1, work.card, constants);  // products and nothing else
    seconds += flops / (rank.head.flops * kMuonRate) / clock;
  }
  return seconds;
}

}  // namespace assay::plan
