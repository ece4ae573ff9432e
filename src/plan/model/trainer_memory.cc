#include "plan/model/trainer_memory.h"

#include <algorithm>

#include "plan/model/pipeline.h"
#include "step/recompute.h"
#include "step/shapes.h"

namespace assay::plan {
namespace {

constexpr double kTrainerContext = 1.0 * 1024 * 1024 * 1024;  // CUDA's, and libraries' workspaces
constexpr double kTwoBytes = 2;                               // bf16, as everything below
// Beside what layers keep: the stream, its gradient and the final norm's result.
constexpr double kStreams = 3;

// Bytes that layers keep per token, by who computes them again.
struct KeptByLayer {
  double stream = 0;      // before attention
  double middle = 0;      // before the MLP, and attention's inputs and results
  double norms = 0;       // results of norms
  double gate_up = 0;     // what goes into the activation
  double activation = 0;  // and what comes out of it

  [[nodiscard]] double with(const step::KeptParts& parts) const {
    double kept = stream;
    if (parts.attention) kept += middle;
    if (parts.norms) kept += norms;
    if (parts.gate_up) kept += gate_up;
    if (parts.activation) kept += activation;
    return kept;
  }
};

step::KeptParts kept_parts(RecomputeKind recompute) {
  switch (recompute) {
    case RecomputeKind::kNone:
      break;
    case RecomputeKind::kCheap:
    case RecomputeKind::kSelective:
      return step::kept_by(spec::Recompute::kCheap);
    case RecomputeKind::kFfn:
      return step::kept_by(spec::Recompute::kFfn);
    case RecomputeKind::kFull:
      return step::kept_by(spec::Recompute::kFull);
  }
  return {};
}

KeptByLayer kept_by_layer(const Work& work, const RankShare& rank) {
  const Shape& shape = work.shape;
  const double tp = work.degrees.tp;
  const double width = shape.dim / rank.sequence_cut;
  constexpr double kSumBytes = 4;  // of a head's log-sum-exp
  KeptByLayer kept;
  kept.stream = kTwoBytes * width;
  kept.middle =
      kTwoBytes * (width + rank.qkv + shape.attention_out / tp) + kSumBytes * shape.heads / tp;
  kept.norms = kTwoBytes * 2 * width;
  // rank.ffn counts a token once per expert that it visits; there it is copied as well.
  const double copies = rank.moe_share * shape.copies() * 2 * shape.dim / rank.sequence_cut;
  kept.gate_up = kTwoBytes * ((shape.mlp_matrices - 1) * rank.ffn / tp + copies);
  kept.activation = kTwoBytes * rank.ffn / tp;
  return kept;
}

}  // namespace

MemoryNeed trainer_memory(const Work& work, const RankShare& rank) {
  const Shape& shape = work.shape;
  const Degrees& d = work.degrees;
  const double layers = shape.layers / d.pp;
  const double experts = rank.expert_parameters * shape.layers;
  const double body = (shape.body_parameters - experts) / d.tp + experts / d.ep / rank.expert_cut;
  const double ends = shape.parameters - shape.body_parameters;
  // The first stage of a pipeline has the embedding, the last the head.
  const double end = ends / d.tp / (d.pp > 1 && !shape.tied ? 2 : 1);
  const double held = body / d.pp + end;

  MemoryNeed need;
  need.parameters = whole_bytes(kTwoBytes * held / d.fsdp);
  need.gradients =
      whole_bytes(work.software.gradient_bytes * held / d.fsdp / std::max(1.0, d.gradient_shards));
  // A table that is also the head has a second sum of gradients; and where there are several
  // micro-batches, each one's gradients have a place of their own, the largest for the head.
  const double table = shape.vocab * shape.dim / d.tp;
  if (shape.tied) need.gradients += whole_bytes(work.software.gradient_bytes * table / d.fsdp);
  const bool folds = work.batch.micros > 1 || d.dp * d.fsdp > 1;
  const double made = folds ? work.software.gradient_bytes * table : 0;
  need.optimizer = whole_bytes(work.software.optimizer_bytes * held / d.fsdp / state_shards(work));
  if (d.fsdp > 1) need.gathered = whole_bytes(unsharded_units(work, rank));
  const KeptByLayer kept = kept_by_layer(work, rank);
  const auto activations = [&](bool last) {
    // The layer at work has everything; and so do, as large as that, the inputs and gradients of
    // all products of micro-batches whose gradients of weights are made later.
    const double in_flight = micros_in_flight(work, last);
    const double whole = d.zero_bubble ? layers * (last ? in_flight : 1) : 1;
    const double others = std::max(0.0, layers * in_flight - whole);
    const double layers_keep =
        rank.tokens * (kept.with(kept_parts(work.recompute)) * others + kept.with({}) * whole);
    if (!last) return layers_keep;
    const double vocab = shape.vocab / d.tp;
    const double rows =
        std::min(rank.tokens, std::max(1.0, static_cast<double>(step::kMostLogits) / vocab));
    return layers_keep + kTwoBytes * rows * vocab;
  };
  const double first = activations(d.pp <= 1);
  const double last = d.pp > 1 ? activations(true) : 0;
  need.activations = whole_bytes(std::max(first, last));
  need.stage = last > first ? d.pp - 1 : 0;
  need.workspace = whole_bytes(kStreams * kTwoBytes * rank.tokens * shape.dim / rank.sequence_cut +
                               made + kTrainerContext);
  return need;
}

}  // namespace assay::plan
