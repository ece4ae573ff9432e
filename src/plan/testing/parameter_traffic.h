// Parameters and gradients that the model prices in a step, by kind of collective. Tests compare
// them with what plan/exchange counts and, of our trainer, with its programs.
#pragma once

#include "plan/model/folded_exchange.h"
#include "plan/model/gradients_time.h"
#include "plan/model/shards_time.h"

namespace assay::plan::testing {

// Bytes of whole messages.
struct ParameterTraffic {
  double reduce_scatter = 0;
  double all_gather = 0;
  double all_reduce = 0;
  double all_to_all = 0;
};

inline ParameterTraffic parameter_traffic(const Work& work) {
  const RankShare rank = rank_share(work, Constants{});  // sizes only: no rate is used
  const Degrees& degrees = work.degrees;
  const TrainedParameters parameters = trained_parameters(work, rank);
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
    const TrainedParameters layer = gathered_of_layer(work, rank);
    const double layers = (layer.dense + layer.experts) * work.shape.layers / degrees.pp;
    const double ends = work.shape.parameters - work.shape.body_parameters;
    const double all = work.batch.micros * (layers + ends / degrees.tp / degrees.pp);
    traffic.all_gather = (work.software.gathers_once ? 1 : 2) * kWeightBytes * all;
    traffic.reduce_scatter = bytes_reduced(work, rank) * all;
  }
  for (const ReplicaExchange& exchange : replica_exchanges(work, rank, parameters)) {
    const double bytes = exchange.bytes * exchange.times;
    if (exchange.kind == step::CollectiveKind::kReduceScatter)
      traffic.reduce_scatter += bytes;
    else if (exchange.kind == step::CollectiveKind::kAllGather)
      traffic.all_gather += bytes;
    else if (exchange.kind == step::CollectiveKind::kAllToAll)
      traffic.all_to_all += bytes;
    else
      traffic.all_reduce += bytes;
  }
  return traffic;
}

}  // namespace assay::plan::testing
