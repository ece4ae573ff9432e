#include "plan/exchange/communication.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "plan/exchange/rank_parameters.h"
#include "plan/exchange/sharded_muon.h"
#include "spec/parameters.h"
#include "step/program.h"

namespace assay::plan {
namespace {

using step::CollectiveKind;
using step::Phase;

// An upper bound of what is added up: tensors and their number both padded to the ranks, four bytes
// an element, three exchanges per micro-batch and a few per step.
bool fits_64_bits(const spec::JobSpec& job) {
  const spec::LayoutSpec& l = job.layout;
  const long double ranks =
      static_cast<long double>(l.fsdp) * static_cast<long double>(l.cp * l.ep);
  long double elements = 0;
  for (const spec::ParameterGroup& group : spec::parameters_of(job.model).groups) {
    elements += (static_cast<long double>(group.count) + ranks) *
                (static_cast<long double>(group.elements_each()) + ranks);
  }
  const auto exchanges = 3 * static_cast<long double>(job.batch.accumulate) + 4;
  return elements * 4 * exchanges < 9e18L;
}

// Gradients are summed before weights are gathered.
int place_in_step(step::CollectiveKind kind) {
  if (kind == step::CollectiveKind::kReduceScatter) return 0;
  return kind == step::CollectiveKind::kAllReduce ? 1 : 2;
}

// How often per optimizer step the elements of a group are exchanged.
struct Times {
  std::int64_t scattered = 0;       // gradients, over the shards
  std::int64_t gathered = 0;        // weights, over the shards
  std::int64_t reduced = 0;         // gradients, over replicas: each rank its shard
  std::int64_t reduced_ends = 0;    // likewise, over the pipeline's two ends: a tied embedding
  std::int64_t muon_gathered = 0;   // what Muon updates, over the shards
  std::int64_t muon_assembled = 0;  // likewise, over tensor-parallel ranks
};

// The exchange of replicas (all-reduce), of a sharded optimizer (ZeRO 1 and 2) and of sharded
// parameters (ZeRO 3, FSDP), a block at a time, over what tensor, pipeline and expert parallelism
// leave to a rank.
class Replicas {
 public:
  Replicas(const spec::JobSpec& job, const ExchangeHabits& habits)
      : job_(job),
        layout_(job.layout),
        parameters_(parameters_of_rank(job)),
        type_(step::numerics_of(job.train.precision).weights),
        gradient_type_(habits.gradients.value_or(type_)),
        sharded_(job.layout.fsdp * (habits.always_shards ? job.layout.cp * job.layout.ep : 1) > 1) {
  }

  Communication exchange() {
    Communication result{
        .scheme = scheme(), .stage = parameters_.stage, .groups = {}, .exchanges = {}};
    for (const RankParameterGroup& group : parameters_.groups) {
      if (group.part.count > 0) result.groups.push_back(row_of(group));
    }
    for (const ExchangeUnit& unit : parameters_.units) add_unit(unit, result.exchanges);
    return result;
  }

 private:
  // Over which a tensor is cut: where there is FSDP, over all ranks that hold it and read other
  // tokens or another part of a sequence. Those that hold other experts hold all else.
  [[nodiscard]] std::int64_t shards(bool expert) const {
    if (!sharded_) return 1;
    return layout_.fsdp * layout_.cp * (expert ? 1 : layout_.ep);
  }

  // Ranks with the same tensors (the same shard of them) and different tokens.
  [[nodiscard]] std::int64_t replicas(bool expert) const {
    return sharded_ ? layout_.dp : layout_.dp * layout_.cp * (expert ? 1 : layout_.ep);
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
    return shards(expert);
  }

  [[nodiscard]] bool is_muon(const RankParameterGroup& g) const {
    return job_.train.optimizer == spec::Optimizer::kMuon && g.part.role == spec::Role::kMatrix;
  }

  [[nodiscard]] bool is_tied_copy(const RankParameterGroup& g) const {
    return job_.model.tied && layout_.pp > 1 && g.part.name == "embedding";
  }

  // Each tensor filled up, so that shards are equal.
  [[nodiscard]] std::int64_t padded_each(const RankParameterGroup& g) const {
    const std::int64_t ranks = shards(g.part.expert);
    return (g.part.elements_each() + ranks - 1) / ranks * ranks;
  }

  [[nodiscard]] Times times_of(const RankParameterGroup& g) const {
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

  [[nodiscard]] GroupTraffic row_of(const RankParameterGroup& g) const {
    const std::int64_t elements = padded_each(g) * g.part.count;
    const Times times = times_of(g);
    const std::int64_t assembled = g.whole_each * g.part.count * times.muon_assembled;
    return {.group = g.part.name,
            .parameters = {g.part.name},
            .optimizer = is_muon(g) ? spec::Optimizer::kMuon : spec::Optimizer::kAdamw,
            .type = type_,
            .gradient_type = gradient_type_,
            .tensors = g.part.count,
            .padded = g.part.count,
            .elements_each = g.part.elements_each(),
            .elements = elements,
            .volume = {.reduce_scatter = elements * times.scattered,
                       .all_gather = elements * (times.gathered + times.muon_gathered) + assembled,
                       .all_reduce = elements / shards(g.part.expert) *
                                     (times.reduced + times.reduced_ends)}};
  }

  // Experts have separate replicas and so separate collectives; Muon's matrices likewise.
  void add_unit(const ExchangeUnit& unit, std::vector<Exchange>& exchanges) const {
    for (const bool expert : {false, true}) {
      std::int64_t elements = 0;
      std::int64_t muon = 0;
      std::int64_t whole = 0;
      std::int64_t tied = 0;
      Times times;
      for (std::size_t i = 0; i < parameters_.groups.size(); ++i) {
        const RankParameterGroup& g = parameters_.groups[i];
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
        const step::Dtype type = kind == CollectiveKind::kAllGather ? type_ : gradient_type_;
        const step::Collective collective{kind, type, message, ranks_among(among, expert)};
        exchanges.push_back({collective, calls * unit.count, among, phase});
      };
      const std::int64_t shard = elements / shards(expert);
      const bool by_layer = layout_.zero == 3;  // else all weights are gathered after the update
      add(CollectiveKind::kReduceScatter, elements, times.scattered, Among::kShards,
          Phase::kBackward);
      add(CollectiveKind::kAllReduce, shard, times.reduced, Among::kReplicas, Phase::kBackward);
      add(CollectiveKind::kAllReduce, tied / shards(expert), 1, Among::kPipelineEnds,
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
    std::string text = sharded_ ? fmt::format("ZeRO {} over {} ranks", layout_.zero, shards(false))
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
  RankParameters parameters_;
  step::Dtype type_;  // of weights
  step::Dtype gradient_type_;
  bool sharded_;
};

}  // namespace

Volume& Volume::operator+=(const Volume& other) {
  reduce_scatter += other.reduce_scatter;
  all_gather += other.all_gather;
  all_reduce += other.all_reduce;
  all_to_all += other.all_to_all;
  send += other.send;
  return *this;
}

Volume Volume::operator*(std::int64_t factor) const {
  return {reduce_scatter * factor, all_gather * factor, all_reduce * factor, all_to_all * factor,
          send * factor};
}

Volume GroupTraffic::bytes() const {
  const std::int64_t of_gradients = step::bytes_of(gradient_type);
  Volume bytes = volume * step::bytes_of(type);
  bytes.reduce_scatter = volume.reduce_scatter * of_gradients;
  bytes.all_reduce = volume.all_reduce * of_gradients;
  return bytes;
}

Volume GroupTraffic::elements_of(const Volume& bytes) const {
  const std::int64_t of_weights = step::bytes_of(type);
  const std::int64_t of_gradients = step::bytes_of(gradient_type);
  return {.reduce_scatter = bytes.reduce_scatter / of_gradients,
          .all_gather = bytes.all_gather / of_weights,
          .all_reduce = bytes.all_reduce / of_gradients,
          .all_to_all = bytes.all_to_all / of_weights,
          .send = bytes.send / of_weights};
}

Volume Communication::bytes() const {
  Volume sum;
  for (const GroupTraffic& group : groups) sum += group.bytes();
  return sum;
}

Volume Communication::two_byte_bytes() const {
  Volume sum;
  for (const GroupTraffic& group : groups) sum += group.two_byte_bytes();
  return sum;
}

double Communication::sent_bytes() const {
  double sum = 0;
  for (const Exchange& exchange : exchanges) {
    sum += step::sent_bytes(exchange.collective) * static_cast<double>(exchange.calls);
  }
  return sum;
}

std::vector<CallSummary> Communication::calls() const {
  std::vector<CallSummary> summaries;
  for (const Exchange& exchange : exchanges) {
    const step::Collective& one = exchange.collective;
    auto at = std::find_if(summaries.begin(), summaries.end(), [&](const CallSummary& summary) {
      return summary.kind == one.kind && summary.type == one.type;
    });
    if (at == summaries.end()) {
      at = summaries.insert(at, {one.kind, one.type, 0, 0, one.bytes(), one.bytes()});
    }
    at->calls += exchange.calls;
    at->bytes += exchange.calls * one.bytes();
    at->least_bytes = std::min(at->least_bytes, one.bytes());
    at->most_bytes = std::max(at->most_bytes, one.bytes());
  }
  std::sort(summaries.begin(), summaries.end(), [](const CallSummary& a, const CallSummary& b) {
    return std::tuple(place_in_step(a.kind), step::to_text(a.type)) <
           std::tuple(place_in_step(b.kind), step::to_text(b.type));
  });
  return summaries;
}

base::Result<Communication> communication_of(const spec::JobSpec& job,
                                             const ExchangeHabits& habits) {
  if (!fits_64_bits(job)) {
    return base::fail(base::usage_error("model",
                                        "a step exchanges more bytes than 64 bits can count",
                                        "make the model or layout.fsdp smaller"));
  }
  return is_sharded_muon(job) ? sharded_muon(job) : Replicas(job, habits).exchange();
}

}  // namespace assay::plan
