#include "plan/exchange/data_parallel.h"

#include <fmt/format.h>

#include "plan/exchange/rank_parameters.h"
#include "step/program.h"

namespace assay::plan {
namespace {

using step::CollectiveKind;
using step::Phase;

// How often per optimizer step the elements of a group are exchanged.
struct Times {
  std::int64_t scattered = 0;       // gradients, over the shards
  std::int64_t gathered = 0;        // weights, over the shards
  std::int64_t reduced = 0;         // gradients, over replicas: each rank its shard
  std::int64_t reduced_ends = 0;    // likewise, over the pipeline's two ends: a tied embedding
  std::int64_t muon_gathered = 0;   // what Muon updates, over the shards
  std::int64_t muon_assembled = 0;  // likewise, over tensor-parallel ranks
};

class Replicas {
 public:
  explicit Replicas(const spec::JobSpec& job)
      : job_(job),
        layout_(job.layout),
        held_(held_by_rank(job)),
        type_(step::numerics_of(job.train.precision).weights) {}

  Communication exchange() {
    Communication result{.scheme = scheme(), .stage = held_.stage, .groups = {}, .exchanges = {}};
    for (const HeldGroup& group : held_.groups) {
      if (group.part.count > 0) result.groups.push_back(row_of(group));
    }
    for (const Unit& unit : held_.units) add_unit(unit, result.exchanges);
    return result;
  }

 private:
  // Ranks with the same tensors (the same shard of them) and tokens of their own. Those that hold
  // other experts hold the same of everything else.
  [[nodiscard]] std::int64_t replicas(bool expert) const {
    return layout_.dp * layout_.cp * (expert ? 1 : layout_.ep);
  }

  [[nodiscard]] std::int64_t ranks_among(Among among, bool expert) const {
    switch (among) {
      case Among::kReplicas:
        return replicas(expert);
      case Among::kTensor:
        return layout_.tp;
      case Among::kPipelineEnds:
        return 2;
      case Among::kShards:
        break;
    }
    return layout_.fsdp;
  }

  [[nodiscard]] bool is_muon(const HeldGroup& g) const {
    return job_.train.optimizer == spec::Optimizer::kMuon && g.part.role == spec::Role::kMatrix;
  }

  [[nodiscard]] bool is_tied_copy(const HeldGroup& g) const {
    return job_.model.tied && layout_.pp > 1 && g.part.name == "embedding";
  }

  // Each tensor filled up, so that shards are equal.
  [[nodiscard]] std::int64_t padded_each(const HeldGroup& g) const {
    return (g.part.elements_each() + layout_.fsdp - 1) / layout_.fsdp * layout_.fsdp;
  }

  [[nodiscard]] Times times_of(const HeldGroup& g) const {
    Times times;
    times.reduced = replicas(g.part.expert) > 1 ? 1 : 0;
    times.reduced_ends = is_tied_copy(g) ? 1 : 0;
    // Muon's update is of the whole matrix, which is put together from its parts once.
    times.muon_assembled = is_muon(g) && g.cut() ? 1 : 0;
    if (layout_.fsdp == 1) return times;
    times.muon_gathered = is_muon(g) ? 1 : 0;
    // Sharded gradients have no room for the other shards until the next micro-batch, nor sharded
    // parameters until the backward pass.
    const std::int64_t micro = job_.batch.accumulate;
    times.scattered = layout_.zero == 1 ? 1 : micro;
    times.gathered = layout_.zero == 3 ? 2 * micro : 1;
    return times;
  }

  [[nodiscard]] GroupTraffic row_of(const HeldGroup& g) const {
    const std::int64_t elements = padded_each(g) * g.part.count;
    const Times times = times_of(g);
    const std::int64_t assembled = g.whole_each * g.part.count * times.muon_assembled;
    return {
        .group = g.part.name,
        .parameters = {g.part.name},
        .optimizer = is_muon(g) ? spec::Optimizer::kMuon : spec::Optimizer::kAdamw,
        .type = type_,
        .tensors = g.part.count,
        .padded = g.part.count,
        .elements_each = g.part.elements_each(),
        .elements = elements,
        .volume = {.reduce_scatter = elements * times.scattered,
                   .all_gather = elements * (times.gathered + times.muon_gathered) + assembled,
                   .all_reduce = elements / layout_.fsdp * (times.reduced + times.reduced_ends)}};
  }

  // Experts have replicas of their own and so collectives of their own; Muon's matrices likewise.
  void add_unit(const Unit& unit, std::vector<Exchange>& exchanges) const {
    for (const bool expert : {false, true}) {
      std::int64_t elements = 0;
      std::int64_t muon = 0;
      std::int64_t whole = 0;
      std::int64_t tied = 0;
      Times times;
      for (std::size_t i = 0; i < held_.groups.size(); ++i) {
        const HeldGroup& g = held_.groups[i];
        if (unit.tensors[i] == 0 || g.part.expert != expert) continue;
        const Times own = times_of(g);
        times = own;
        elements += padded_each(g) * unit.tensors[i];
        muon += padded_each(g) * unit.tensors[i] * own.muon_gathered;
        tied += padded_each(g) * unit.tensors[i] * own.reduced_ends;
        whole += g.whole_each * unit.tensors[i] * own.muon_assembled;
      }
      const auto add = [&](CollectiveKind kind, std::int64_t message, std::int64_t calls,
                           Among among, Phase phase) {
        if (message == 0 || calls == 0) return;
        const step::Collective collective{kind, type_, message, ranks_among(among, expert)};
        exchanges.push_back({collective, calls * unit.count, among, phase});
      };
      const std::int64_t shard = elements / layout_.fsdp;
      const bool by_layer = layout_.zero == 3;  // else all weights are gathered after the update
      add(CollectiveKind::kReduceScatter, elements, times.scattered, Among::kShards,
          Phase::kBackward);
      add(CollectiveKind::kAllReduce, shard, times.reduced, Among::kReplicas, Phase::kBackward);
      add(CollectiveKind::kAllReduce, tied / layout_.fsdp, 1, Among::kPipelineEnds,
          Phase::kBackward);
      if (by_layer) {
        for (const Phase phase : {Phase::kForward, Phase::kBackward}) {
          add(CollectiveKind::kAllGather, elements, times.gathered / 2, Among::kShards, phase);
        }
      } else {
        add(CollectiveKind::kAllGather, elements, times.gathered, Among::kShards,
            Phase::kOptimizer);
      }
      add(CollectiveKind::kAllGather, muon, 1, Among::kShards, Phase::kOptimizer);
      add(CollectiveKind::kAllGather, whole, 1, Among::kTensor, Phase::kOptimizer);
    }
  }

  [[nodiscard]] std::string scheme() const {
    const std::int64_t copies = replicas(false);
    std::string text = layout_.fsdp > 1
                           ? fmt::format("ZeRO {} over {} ranks", layout_.zero, layout_.fsdp)
                           : std::string();
    if (copies > 1) {
      text += fmt::format("{}{} replicas", text.empty() ? "all-reduce over " : ", ", copies);
    }
    if (text.empty()) return "one rank holds each parameter: nothing to exchange";
    text += ", a block at a time";
    const bool muon = job_.train.optimizer == spec::Optimizer::kMuon;
    if (muon && layout_.fsdp * layout_.tp > 1) text += "; Muon gathers its matrices once more";
    return text;
  }

  const spec::JobSpec& job_;
  const spec::LayoutSpec& layout_;
  Held held_;
  step::Dtype type_;
};

}  // namespace

Communication data_parallel(const spec::JobSpec& job) {
  return Replicas(job).exchange();
}

}  // namespace assay::plan
