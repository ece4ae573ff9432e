#include "plan/model/trainer_memory.h"

#include <algorithm>
#include <cmath>

#include "plan/model/folded_exchange.h"
#include "plan/model/pipeline.h"
#include "step/recompute.h"
#include "step/shapes.h"

namespace assay::plan {
namespace {

constexpr double kTwoBytes = 2;  // bf16, as everything below

// Bytes that layers keep per token, by part: a recomputation policy keeps or drops each.
struct KeptByLayer {
  double stream = 0;      // before attention
  double middle = 0;      // before the MLP, and attention's inputs and results
  double norms = 0;       // results of norms
  double gate_up = 0;     // inputs of the activation
  double activation = 0;  // outputs of the activation
  double rows = 0;        // of a mixture, during its exchange: rows sent to experts and back
  double later_rows = 0;  // of these, what deferred weight gradients need

  [[nodiscard]] double with(const step::KeptParts& parts) const {
    double kept = stream;
    if (parts.attention) kept += middle;
    if (parts.norms) kept += norms;
    if (parts.gate_up) kept += gate_up;
    if (parts.activation) kept += activation;
    return kept;
  }
};

// Of experts that only some ranks have (layout.ep), a layer's on one rank; 0 where all have all.
double spread_experts(const Work& work, const RankShare& rank) {
  return work.degrees.ep > 1 ? rank.expert_parameters / rank.expert_cut / work.degrees.ep : 0;
}

// The number of ranks, of `ranks`, that have the same experts as one of them.
double with_same_experts(const Work& work, double ranks) {
  return std::max(1.0, ranks / work.degrees.ep);
}

// Rows of experts that there is room for, of those that come if the load is even: all tokens of all
// ranks may choose the experts of one, up to a capacity.
double room_for_rows(const Work& work, const RankShare& rank) {
  const double visits = std::max(1.0, work.shape.experts_per_token);
  const double ep = work.degrees.ep;
  if (ep <= 1) return 1;
  const double room = ep * std::min(visits, rank.local_experts) / visits;
  return work.shape.most_load > 0 ? std::min(room, std::max(1.0, work.shape.most_load)) : room;
}

// As wide as the stream, and as many as there is room for: inputs and outputs, or gradients of
// both; and where they travel, as they are sent or have arrived.
constexpr double kOwnRows = 2;
constexpr double kSpreadRows = 4;
// Inputs of an expert's first product, and gradients of its last one's results.
constexpr double kLaterRows = 2;

KeptByLayer kept_by_layer(const Work& work, const RankShare& rank) {
  const Shape& shape = work.shape;
  const double tp = work.degrees.tp;
  const double width = shape.dim / rank.sequence_cut;
  constexpr double kSumBytes = 4;  // of a head's log-sum-exp
  KeptByLayer kept;
  kept.stream = kTwoBytes * width;
  kept.middle =
      kTwoBytes * (width + rank.qkv + shape.attention_out / tp) + kSumBytes * shape.heads / tp;
  kept.norms = kTwoBytes * 2 * shape.dim;  // of all tokens, as the products read them
  // rank.ffn counts a token once per expert that it visits; there it is copied as well.
  const double room = room_for_rows(work, rank);
  const double of_experts =
      rank.moe_share * shape.copies() * std::max(shape.expert_ffn, 1.0) * (room - 1);
  const double ffn = rank.ffn + of_experts;
  kept.gate_up = kTwoBytes * (shape.mlp_matrices - 1) * ffn / tp;
  kept.activation = kTwoBytes * ffn / tp;
  const bool is_mixture = rank.moe_share > 0;
  const double kinds = room > 1 ? kSpreadRows : kOwnRows;
  if (is_mixture) {
    const double kind = kTwoBytes * room * shape.copies() * shape.dim;
    kept.rows = kinds * kind;
    kept.later_rows = rank.moe_share * kLaterRows * kind;
  }
  return kept;
}

// For the memory in use at once, besides the training state and gathered blocks, in a stage with
// `layers` layers.
struct Stage {
  double layers = 0;
  bool first = false;
  bool last = false;
  double deferred = 1;  // micro-batches whose weight gradients are deferred, if any are
};

// Micro-batches between their forward and backward pass (step/pipeline.cc).
double in_flight_of(const Work& work, const Stage& stage) {
  const Degrees& d = work.degrees;
  const double micros = work.batch.micros;
  if (d.pp <= 1) return 1;
  if (d.gpipe) return micros;
  if (d.zero_bubble) return std::min(micros, d.pp);
  const double after = stage.last ? 0 : stage.first ? d.pp - 1 : d.pp - 2;
  if (d.chunks <= 1) return std::min(micros, after + 1);
  // Of one chunk or another; each has places of its own, in groups of as many as there are stages.
  const double passes = 2 * after + (d.chunks - 1) * d.pp + 1;
  return std::min(micros, std::ceil(passes / d.pp) * d.pp / d.chunks);
}

// Elements of the largest unit of a block.
double unit_of_block(const Work& work, const RankShare& rank) {
  const Shape& shape = work.shape;
  const double block = shape.body_parameters / shape.layers;
  if (const double experts = spread_experts(work, rank); experts > 0) {
    return std::max(experts, block / work.degrees.tp - work.degrees.ep * experts);
  }
  const double mlp = shape.mlp_matrices * shape.dim * shape.ffn;
  const bool modules = work.degrees.units > 1 && !shape.is_moe();
  return (modules ? std::max(mlp, block - mlp) : block / work.degrees.units) / work.degrees.tp;
}

double alive_bytes(const Work& work, const RankShare& rank, const Stage& stage) {
  const Shape& shape = work.shape;
  const Degrees& d = work.degrees;
  const KeptByLayer kept = kept_by_layer(work, rank);
  const double stream = kTwoBytes * rank.tokens * shape.dim / rank.sequence_cut;
  const double in_flight = in_flight_of(work, stage);
  const double each = rank.tokens * kept.with(step::kept_by(recompute_key(work.recompute)));
  const double whole = rank.tokens * kept.with({});  // of the layer at work, and of the last
  // And, as large as that, the inputs and gradients of all products of micro-batches whose
  // gradients of weights are made later.
  const double later = stage.layers * std::min(in_flight, stage.deferred);
  const double kept_whole = d.zero_bubble ? later : stage.last && d.gpipe ? in_flight : 1;
  double layers = std::max(0.0, stage.layers * in_flight - kept_whole) * each + kept_whole * whole;

  // Gradients that are made, and what arrives from other ranks: on their way until their place is
  // needed again, or the next micro-batch has passed its first block. Blocks take two places in
  // turns.
  const double gradient = work.software.gradient_bytes;
  const double data = d.dp * d.cp * d.fsdp;
  const double table = shape.vocab * shape.dim / d.tp;
  const bool travels = data > 1;
  const bool folds = work.batch.micros > 1 || travels;
  const double copies = travels ? 2 : folds ? 1 : 0;
  const double blocks = gradient * unit_of_block(work, rank) * copies * (travels ? 2 : 1);
  const double end = gradient * table * copies;
  const bool repeats = travels && work.batch.micros > in_flight;  // after the first backward pass
  const double left = repeats ? blocks : 0;
  const double left_end = repeats && stage.first ? end : 0;
  const double gathered = d.fsdp > 1 ? kTwoBytes * table : 0;
  const double addends = d.tp > 1 ? 2 * kTwoBytes * rank.tokens * shape.dim : 0;

  layers += rank.tokens * kept.rows;
  // Which every layer keeps until then, whatever is computed again.
  if (d.zero_bubble) layers += rank.tokens * kept.later_rows * std::max(0.0, later - 1);
  double most = layers + 2 * stream + std::max(blocks, left + left_end) + addends;
  if (stage.last) {
    const double vocab = shape.vocab / d.tp;
    const double rows =
        std::min(rank.tokens, std::max(1.0, static_cast<double>(step::kMostLogits) / vocab));
    const double made = folds ? gradient * table : 0;
    most =
        std::max({most, layers + 4 * stream + addends + kTwoBytes * rows * vocab + gathered + made,
                  layers + 2 * stream + blocks + end + addends});
  }
  if (stage.first) {
    const double others = stage.layers * (in_flight - 1) * each;
    most = std::max(most, others + 2 * stream + blocks + end);
  }
  if (d.pp > 1) most += (in_flight + 1) * stream;  // received, and their gradients
  return most;
}

}  // namespace

MemoryNeed trainer_memory(const Work& work, const RankShare& rank) {
  const Shape& shape = work.shape;
  const Degrees& d = work.degrees;
  // Experts that only some ranks have are divided over fewer ranks than the rest.
  const double of_experts = spread_experts(work, rank);
  const double body = shape.body_parameters / d.tp - d.ep * of_experts * shape.layers;
  const double table = shape.vocab * shape.dim / d.tp;
  const double shards = d.fsdp * state_shards(work);
  const double expert_shards = with_same_experts(work, shards);
  const StageLayers stages = stage_layers(work);
  const auto need_of = [&](const Stage& stage) {
    // The first stage of a pipeline has the embedding, the last the head, or the same table again.
    const double tables = d.pp > 1 ? (stage.first || stage.last ? 1 : 0) : shape.tied ? 1 : 2;
    const double held = body / shape.layers * stage.layers + tables * table;
    const double experts = of_experts * stage.layers;
    // A table that is also the head has a second sum of gradients.
    const double sums = held + (shape.tied && tables > 0 ? table : 0);
    MemoryNeed need;
    need.parameters =
        whole_bytes(kTwoBytes * (held / d.fsdp + experts / with_same_experts(work, d.fsdp)));
    need.gradients =
        whole_bytes(work.software.gradient_bytes * (sums / shards + experts / expert_shards));
    need.optimizer =
        whole_bytes(work.software.optimizer_bytes * (held / shards + experts / expert_shards));
    if (d.fsdp > 1) {
      constexpr double kPlaces = 2;
      need.gathered = whole_bytes(kPlaces * kTwoBytes * unit_of_block(work, rank));
    }
    need.activations = whole_bytes(alive_bytes(work, rank, stage));
    need.workspace = whole_bytes(kTrainerContext);
    return need;
  };
  if (d.pp <= 1) return need_of({shape.layers, true, true});
  MemoryNeed most = need_of({stages.first, true, false});
  // A stage makes gradients of weights as many micro-batches later as there are stages before it.
  const auto compare = [&](const Stage& stage, double number) {
    MemoryNeed need = need_of(stage);
    need.stage = number;
    if (need.total() > most.total()) most = need;
  };
  if (d.pp > 2 && stages.most > stages.first) compare({stages.most, false, false, 2}, 1);
  if (d.pp > 2 && d.zero_bubble) compare({stages.most, false, false, d.pp - 1}, d.pp - 2);
  compare({stages.last, false, true, d.pp}, d.pp - 1);
  return most;
}

}  // namespace assay::plan
