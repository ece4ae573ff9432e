#include "plan/model/gradients_time.h"

#include <algorithm>

#include "plan/model/folded_exchange.h"

namespace assay::plan {
namespace {

using step::CollectiveKind;

constexpr double kGradientBuckets = 20;

class ReplicaPlan {
 public:
  ReplicaPlan(const Work& work, const RankShare& rank, const TrainedParameters& parameters)
      : work_(work), degrees_(work.degrees), rank_(rank) {
    if (folds_gradients(work)) {
      add_folded();
      return;
    }
    const double fsdp = degrees_.fsdp;
    // Ranks of an axis of experts read different tokens and have the same dense layers.
    const double same = replicas(degrees_);
    const double n = same * (degrees_.ep_axis ? degrees_.ep : 1);
    // Replicas of shards reduce a shard each, and the shards lie between them.
    const double apart = degrees_.tp * (degrees_.dp > 1 ? fsdp : 1);
    if (work.muon && work.muon_exchange.stacked) {
      if (n > 1) add_stacks((parameters.dense + parameters.experts) / fsdp, {n, apart});
      return;
    }
    const double between = sharers_apart(degrees_) * (degrees_.ep_axis ? degrees_.ep : 1);
    const double sharing = degrees_.state_shards;
    if (degrees_.ep <= 1) {
      add_replicas((parameters.dense + parameters.experts) / fsdp, {n, apart}, sharing, between);
    } else {
      add_replicas(parameters.dense / fsdp, {n, apart}, sharing, between);
      add_experts(parameters.experts, same, sharing);
    }
    if (work.muon) gather_matrices(between);
  }

  ReplicaExchanges result;

 private:
  // Some of the ranks with the same dense layers hold the same experts: first among FSDP's ranks,
  // which divide them.
  void add_experts(double parameters, double same_layers, double sharing) {
    const double shards = degrees_.fsdp > 1 ? expert_holders(degrees_, rank_, degrees_.fsdp) : 1;
    const double holders = expert_holders(degrees_, rank_, same_layers * degrees_.fsdp) / shards;
    // Of all ranks with the same dense layers, evenly spread.
    const double all = degrees_.tp * same_layers * degrees_.fsdp;
    const double apart = all * (degrees_.ep_axis ? degrees_.ep : 1) / holders;
    add_replicas(parameters / shards, {holders, apart},
                 sharing > 0 ? expert_holders(degrees_, rank_, sharing) : 0,
                 expert_holders_apart(degrees_, rank_));
  }

  void add(const ReplicaExchange& exchange) {
    if (exchange.axis.ranks > 1 && exchange.bytes > 0) result.each[result.count++] = exchange;
  }

  // Gradients after every micro-batch; what replicas have added up, and weights, after the last.
  // Where weights are gathered for every layer, gradients leave with them (shards_time.cc).
  void add_folded() {
    const TrainedPart part = trained_part(work_);
    const FoldedAxes axes = folded_axes(work_);
    const double gradient = work_.software.gradient_bytes;
    const double units = part.layers * degrees_.units + part.used;
    const double matrices = work_.muon ? part.blocks : 0;  // whole on their ranks
    if (degrees_.fsdp <= 1) {
      add({CollectiveKind::kAllToAll, gradient * part.made(), axes.data, units, work_.batch.micros,
           true});
      add({CollectiveKind::kAllToAll, gradient * part.experts, axes.expert_data, units,
           work_.batch.micros, true});
    }
    add({CollectiveKind::kAllGather, gradient * (part.held() - matrices) / axes.shards.ranks,
         axes.replicas, units});
    add({CollectiveKind::kAllGather, gradient * part.experts / axes.expert_shards.ranks,
         axes.replicas, units});
    if (degrees_.fsdp > 1) return;
    add({CollectiveKind::kAllGather, kWeightBytes * (part.held() - matrices), axes.shards, units});
    add({CollectiveKind::kAllGather, kWeightBytes * part.experts, axes.expert_shards, units});
    add({CollectiveKind::kAllGather, kWeightBytes * matrices, axes.data, units});
  }

  // Reducing costs what gathering does.
  void add_stacks(double parameters, const RankAxis& replicas) {
    const MuonExchange& muon = work_.muon_exchange;
    add({CollectiveKind::kAllGather, muon.bytes * parameters, replicas, muon.calls, 1, true});
  }

  // Those that share the optimizer's state reduce gradients to their shards and gather weights;
  // over all others gradients, or shards of them, are summed.
  void add_replicas(double parameters, const RankAxis& replicas, double sharing, double between) {
    const double gradient = work_.software.gradient_bytes;
    if (sharing <= 0) sharing = work_.software.shards_optimizer ? replicas.ranks : 1;
    const double shards = std::min(sharing, replicas.ranks);
    RankAxis sharers = replicas;
    RankAxis others{replicas.ranks / shards, replicas.apart};
    if (shards < replicas.ranks) {
      sharers = {shards, between};
      if (degrees_.dp > shards) others.apart *= shards;
    }
    // Sharded gradients have no room for the other shards until the next micro-batch.
    const double times = degrees_.gradient_shards > 1 ? work_.batch.micros : 1;
    add({CollectiveKind::kReduceScatter, gradient * parameters, sharers, kGradientBuckets, times,
         true});
    add({CollectiveKind::kAllReduce, gradient * parameters / shards, others, kGradientBuckets, 1,
         true});
    add({CollectiveKind::kAllGather, kWeightBytes * parameters, sharers, kGradientBuckets, 1,
         true});
  }

  // Muon updates whole matrices, and each is put together from its shards and from what
  // tensor-parallel ranks have of it.
  void gather_matrices(double between) {
    const double experts = rank_.expert_parameters * work_.shape.layers;
    const double shards = degrees_.fsdp > 1 ? degrees_.fsdp : degrees_.state_shards;
    const auto gather = [&](double elements, double cut, const RankAxis& axis) {
      const double whole = kWeightBytes * elements / degrees_.pp;
      add({CollectiveKind::kAllGather, whole / cut, axis, kGradientBuckets});
      add({CollectiveKind::kAllGather, whole, {.ranks = cut}, kGradientBuckets});
    };
    gather(work_.shape.body_parameters - experts, degrees_.tp, {shards, between});
    gather(experts / degrees_.ep, rank_.expert_cut,
           {expert_holders(degrees_, rank_, shards), expert_holders_apart(degrees_, rank_)});
  }

  const Work& work_;
  const Degrees& degrees_;
  const RankShare& rank_;
};

}  // namespace

ReplicaExchanges replica_exchanges(const Work& work, const RankShare& rank,
                                   const TrainedParameters& parameters) {
  return ReplicaPlan(work, rank, parameters).result;
}

double gradients_seconds(const Work& work, const RankShare& rank,
                         const TrainedParameters& parameters, const HidingPasses& passes,
                         const Constants& constants) {
  double repeated = 0;  // after every micro-batch
  double repeats = 0;   // but the last
  double last = 0;
  double gathered = 0;  // weights, before the next step's first pass
  double exposed = 0;
  const bool folds = folds_gradients(work);
  for (const ReplicaExchange& exchange : replica_exchanges(work, rank, parameters)) {
    const double seconds =
        exchange.calls * exchange_seconds(exchange.kind, exchange.bytes / exchange.calls,
                                          exchange.axis, work.links, constants);
    const bool gather = !folds && !work.muon && exchange.kind == CollectiveKind::kAllGather;
    (!exchange.hidden ? exposed : gather ? gathered : last) += seconds;
    if (exchange.times > 1) {
      repeated += seconds;
      repeats = exchange.times - 1;
    }
  }
  const auto unhidden = [&](double seconds, double behind) {
    if (!work.software.overlaps_gradients) return seconds;
    return (1 - constants.dp_overlap) * seconds +
           std::max(0.0, constants.dp_overlap * seconds - behind);
  };
  const double exchanged = repeats * unhidden(repeated, passes.backward) +
                           unhidden(last, passes.backward) + unhidden(gathered, passes.forward) +
                           exposed;
  if (!folds) return exchanged;
  return exchanged + folded_bytes(work) / rank.memory_rate;
}

}  // namespace assay::plan
