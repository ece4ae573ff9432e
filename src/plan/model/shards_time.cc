#include "plan/model/shards_time.h"

#include <algorithm>

#include "plan/model/exchange_time.h"
#include "plan/model/folded_exchange.h"
#include "plan/model/gradients_time.h"

namespace assay::plan {
namespace {

using step::CollectiveKind;

constexpr double kTensorsPerLayer = 12;  // that ZeRO-3 of 2021 gathers one by one
constexpr double kEndsExposed = 0.5;     // of the first and last gather
// XLA schedules exchanges with the whole step in view, and copies nothing to flat buffers and back.
constexpr double kXlaSlowed = 0.3;
constexpr double kLoraShare = 0.003;  // of the model's parameters, in adapters

// Newton-Schulz: flops per parameter and element of a matrix's width, of five iterations, and the
// rate that its products reach.
constexpr double kMuonFlops = 40.0 / 12;
constexpr double kMuonRate = 0.6;

// A layer's parameters, as one FSDP rank has them gathered. As many bytes of experts as would be
// sent among all n, though fewer ranks hold the same ones.
double gathered_of_layer(const Work& work, const RankShare& rank) {
  const Degrees& degrees = work.degrees;
  const double n = degrees.fsdp;
  const double holders = expert_replicas(degrees, n);
  const double dense = work.shape.body_parameters / work.shape.layers - rank.expert_parameters;
  const double experts =
      rank.expert_parameters / rank.expert_cut / degrees.ep * (holders - 1) / holders * n / (n - 1);
  return dense / degrees.tp + experts;
}

// Bytes per parameter and micro-batch.
double bytes_gathered(const Software& software) {
  return software.gathers_once ? kWeightBytes : 2 * kWeightBytes;
}

double bytes_reduced(const Work& work, const RankShare& rank) {
  return rank.trained ? work.software.gradient_bytes : 0;
}

}  // namespace

double expert_replicas(const Degrees& degrees, double ranks) {
  return degrees.ep_axis ? ranks : std::max(1.0, ranks / degrees.ep);
}

ShardsTime shards_time(const Work& work, const RankShare& rank, double forward, double backward,
                       const Constants& constants) {
  const Degrees& degrees = work.degrees;
  const Software& software = work.software;
  const double n = degrees.fsdp;
  if (n <= 1) return {};
  const double apart = sharers_apart(degrees) * (degrees.ep_axis ? degrees.ep : 1);
  const bool exposed = software.zero3_by_tensor || rank.naive_experts;
  const double calls = software.zero3_by_tensor ? kTensorsPerLayer : degrees.units;
  const auto seconds = [&](CollectiveKind kind, double bytes) {
    return calls * exchange_seconds(kind, bytes / calls, {n, apart}, work.links, constants,
                                    exposed ? constants.zero3_bw : 1);
  };

  if (folds_gradients(work)) {
    const TrainedPart part = trained_part(work);
    const double unit = part.blocks / part.layers;
    const double experts = part.experts / part.layers;
    const FoldedAxes axes = folded_axes(work);
    const auto of = [&](CollectiveKind kind, double bytes, const RankAxis& axis) {
      return calls * exchange_seconds(kind, bytes / calls, axis, work.links, constants);
    };
    const double units = part.layers * units_of_layer(work);
    const double gathers = 1 - resident_units(work, units) / (2 * units * work.batch.micros);
    const double weights =
        gathers * (of(CollectiveKind::kAllGather, kWeightBytes * unit, axes.shards) +
                   of(CollectiveKind::kAllGather, kWeightBytes * experts, axes.expert_shards));
    const double gradient = work.software.gradient_bytes;
    const double sums = of(CollectiveKind::kAllToAll, gradient * unit, axes.data) +
                        of(CollectiveKind::kAllToAll, gradient * experts, axes.expert_data);
    const auto exposed_of = [&](double compute, double exchange) {
      return std::max(0.0, exchange - compute) + constants.fsdp_slow * std::min(compute, exchange);
    };
    const double end = part.used > 0 ? part.table : 0;
    return {
        .forward = exposed_of(forward, weights),
        .backward = exposed_of(backward, weights + sums),
        .ends = kEndsExposed * (of(CollectiveKind::kAllGather, kWeightBytes * end, axes.shards) +
                                of(CollectiveKind::kAllToAll, gradient * end, axes.data))};
  }
  const double unit = gathered_of_layer(work, rank);
  const double gather = seconds(CollectiveKind::kAllGather, kWeightBytes * unit);
  const double reduce = seconds(CollectiveKind::kReduceScatter, bytes_reduced(work, rank) * unit);
  const auto unhidden = [&](double compute, double exchange) {
    if (exposed) return exchange;
    const double slowed =
        constants.fsdp_slow * (work.software.framework == Framework::kXla ? kXlaSlowed : 1);
    return std::max(0.0, exchange - compute) + slowed * std::min(compute, exchange);
  };
  // Of one end: what the other one exchanges is beside layers.
  const double ends = (2 * kWeightBytes + bytes_reduced(work, rank)) * work.shape.vocab *
                      work.shape.dim / degrees.tp;
  return {.forward = unhidden(forward, gather),
          .backward = unhidden(backward, (software.gathers_once ? 0 : gather) + reduce),
          .ends = kEndsExposed * seconds(CollectiveKind::kAllGather, ends)};
}

double trained_parameters(const Work& work, const RankShare& rank) {
  if (folds_gradients(work)) {
    // Experts that fewer ranks have are divided by fewer.
    const TrainedPart part = trained_part(work);
    return part.held() + work.degrees.ep * part.experts;
  }
  const Shape& shape = work.shape;
  const Degrees& degrees = work.degrees;
  const double experts = rank.expert_parameters * shape.layers;
  const double table = shape.vocab * shape.dim;
  // Of a pipeline's stages the first and the last have one table each.
  double ends = degrees.pp > 1 ? 0.6 * table : (shape.tied ? 1 : 2) * table;
  if (work.muon) ends = (shape.parameters - shape.body_parameters) / degrees.pp;
  const double held = (shape.body_parameters - experts) / degrees.tp / degrees.pp +
                      experts / rank.expert_cut / degrees.pp / degrees.ep + ends / degrees.tp;
  return work.lora ? kLoraShare * held : held;
}

ParameterTraffic parameter_traffic(const Work& work) {
  const RankShare rank = rank_share(work, Constants{});  // sizes only: no rate is used
  const Degrees& degrees = work.degrees;
  const double parameters = trained_parameters(work, rank);
  ParameterTraffic traffic;
  if (folds_gradients(work) && degrees.fsdp > 1) {
    const TrainedPart part = trained_part(work);
    const double micros = work.batch.micros;
    const double units = part.layers * units_of_layer(work);
    const double passes = 2 * micros - resident_units(work, units) / units;
    const FoldedAxes axes = folded_axes(work);
    const double experts = axes.expert_shards.ranks > 1 ? part.experts : 0;
    traffic.all_gather =
        kWeightBytes * (passes * (part.blocks + experts) + micros * part.gathered * part.table);
    traffic.all_to_all = work.software.gradient_bytes * micros *
                         (part.made() + (axes.expert_data.ranks > 1 ? part.experts : 0));
  } else if (degrees.fsdp > 1) {
    const double layers = gathered_of_layer(work, rank) * work.shape.layers / degrees.pp;
    const double ends = work.shape.parameters - work.shape.body_parameters;
    const double all = work.batch.micros * (layers + ends / degrees.tp / degrees.pp);
    traffic.all_gather = bytes_gathered(work.software) * all;
    traffic.reduce_scatter = bytes_reduced(work, rank) * all;
  }
  for (const ReplicaExchange& exchange : replica_exchanges(work, rank, parameters)) {
    const double bytes = exchange.bytes * exchange.times;
    if (exchange.kind == CollectiveKind::kReduceScatter)
      traffic.reduce_scatter += bytes;
    else if (exchange.kind == CollectiveKind::kAllGather)
      traffic.all_gather += bytes;
    else if (exchange.kind == CollectiveKind::kAllToAll)
      traffic.all_to_all += bytes;
    else
      traffic.all_reduce += bytes;
  }
  return traffic;
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
