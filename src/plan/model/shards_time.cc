#include "plan/model/shards_time.h"

#include <algorithm>

#include "plan/model/exchange_time.h"
#include "plan/model/folded_exchange.h"
#include "plan/model/gradients_time.h"

namespace assay::plan {
namespace {

using step::CollectiveKind;

constexpr double kTensorsPerLayer = 12;  // that ZeRO-3 of 2021 gathers one by one
constexpr double kEndsExposed = 0.5;     // of what one end exchanges, at least
// XLA schedules exchanges with the whole step in view, and copies nothing to flat buffers and back.
constexpr double kXlaSlowed = 0.3;
constexpr double kLoraShare = 0.003;  // of the model's parameters, in adapters

// Newton-Schulz: flops per parameter and element of a matrix's width, of five iterations, and the
// rate that its products reach.
constexpr double kMuonFlops = 40.0 / 12;
constexpr double kMuonRate = 0.6;

}  // namespace

TrainedParameters gathered_of_layer(const Work& work, const RankShare& rank) {
  const Degrees& degrees = work.degrees;
  const double dense = work.shape.body_parameters / work.shape.layers - rank.expert_parameters;
  const bool shared = expert_holders(degrees, rank, degrees.fsdp) > 1;
  return {.dense = dense / degrees.tp,
          .experts = shared ? rank.expert_parameters / rank.expert_cut / degrees.ep : 0};
}

double bytes_reduced(const Work& work, const RankShare& rank) {
  return rank.trained ? work.software.gradient_bytes : 0;
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
  const auto seconds = [&](CollectiveKind kind, double bytes, const RankAxis& axis) {
    return calls * exchange_seconds(kind, bytes / calls, axis, work.links, constants,
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
      return unhidden_seconds(exchange, compute, constants.fsdp_slow);
    };
    const double table = part.used > 0 ? part.table : 0;
    const double gathered = of(CollectiveKind::kAllGather, kWeightBytes * table, axes.shards);
    const double summed = of(CollectiveKind::kAllToAll, gradient * table, axes.data);
    const double beside =
        part.layers * (std::max(0.0, forward - weights) + std::max(0.0, backward - weights - sums));
    // A part of what one end exchanges; the rest is beside layers, where the links have time for
    // it.
    const double in_the_way = kEndsExposed * (gathered + summed);
    const double all = part.gathered * gathered + part.used * summed;
    return {.forward = exposed_of(forward, weights),
            .backward = exposed_of(backward, weights + sums),
            .ends = in_the_way + exposed_of(beside, all - in_the_way)};
  }
  const TrainedParameters unit = gathered_of_layer(work, rank);
  const RankAxis shards{n, apart};
  const RankAxis expert_shards{expert_holders(degrees, rank, n),
                               expert_holders_apart(degrees, rank)};
  const auto of_layer = [&](CollectiveKind kind, double each) {
    return seconds(kind, each * unit.dense, shards) +
           seconds(kind, each * unit.experts, expert_shards);
  };
  const double gather = of_layer(CollectiveKind::kAllGather, kWeightBytes);
  const double reduce = of_layer(CollectiveKind::kReduceScatter, bytes_reduced(work, rank));
  const auto unhidden = [&](double compute, double exchange) {
    if (exposed) return exchange;
    const double slowed =
        constants.fsdp_slow * (work.software.framework == Framework::kXla ? kXlaSlowed : 1);
    return unhidden_seconds(exchange, compute, slowed);
  };
  // Of one end: what the other one exchanges is beside layers.
  const double ends = (2 * kWeightBytes + bytes_reduced(work, rank)) * work.shape.vocab *
                      work.shape.dim / degrees.tp;
  return {.forward = unhidden(forward, gather),
          .backward = unhidden(backward, (software.gathers_once ? 0 : gather) + reduce),
          .ends = kEndsExposed * seconds(CollectiveKind::kAllGather, ends, shards)};
}

TrainedParameters trained_parameters(const Work& work, const RankShare& rank) {
  if (folds_gradients(work)) {
    const TrainedPart part = trained_part(work);
    return {part.held(), part.experts};
  }
  const Shape& shape = work.shape;
  const Degrees& degrees = work.degrees;
  const double experts = rank.expert_parameters * shape.layers;
  const double table = shape.vocab * shape.dim;
  // Of a pipeline's stages the first and the last have one table each.
  double ends = degrees.pp > 1 ? 0.6 * table : (shape.tied ? 1 : 2) * table;
  if (work.muon) ends = (shape.parameters - shape.body_parameters) / degrees.pp;
  const double part = work.lora ? kLoraShare : 1;
  const double stage = stage_layers(work).most / shape.layers;
  return {part * ((shape.body_parameters - experts) * stage + ends) / degrees.tp,
          part * experts * stage / rank.expert_cut / degrees.ep};
}

double optimizer_seconds(const Work& work, const RankShare& rank,
                         const TrainedParameters& parameters, const Constants& constants) {
  const Degrees& degrees = work.degrees;
  const double replicas = state_shards(work);
  const double sharers = replicas * degrees.fsdp;
  const double shard =
      parameters.dense / sharers + parameters.experts / expert_holders(degrees, rank, sharers);
  double seconds = shard * constants.opt_bytes * work.software.optimizer_traffic / rank.memory_rate;
  if (work.muon && rank.trained) {
    const double ranks = sharers * degrees.tp * degrees.pp;
    const double flops = kMuonFlops * work.shape.body_parameters * work.shape.dim / ranks;
    const double clock = sustained_clock(1, work.card, constants);  // products and nothing else
    seconds += flops / (rank.head.flops * kMuonRate) / clock;
  }
  return seconds;
}

}  // namespace assay::plan
