#include "plan/model/memory.h"

#include <algorithm>

#include "plan/model/rank_share.h"
#include "plan/model/trainer_memory.h"

namespace assay::plan {
namespace {

constexpr double kGib = 1024.0 * 1024 * 1024;

// Per parameter of a rank, before FSDP cuts it.
struct StateBytes {
  double weight = 0;
  double gradient = 0;
  double optimizer = 0;
};

StateBytes state_bytes(const Work& work) {
  const Software& software = work.software;
  if (work.lora) return {.weight = 2};
  if (software.pure_bf16) return {2, 2, 4};
  if (software.shards_optimizer) {
    return {2, software.gradient_bytes, software.optimizer_bytes / state_shards(work)};
  }
  // FSDP shards weights in fp32, which are their own masters; a replica has both, and fp32
  // gradients.
  return work.degrees.fsdp > 1 ? StateBytes{4, 4, 8} : StateBytes{2, 4, 12};
}

// Kept per layer from the forward pass, bytes of one micro-batch.
double kept_bytes(const Work& work, const RankShare& rank, double scores) {
  const double width = rank.tokens * work.shape.dim;
  if (work.recompute == RecomputeKind::kFull) return 2 * width / rank.sequence_cut;
  // 34 bytes per token and element: 10 of norms and residuals, 24 of attention and MLP.
  const double all = width * (10 / rank.sequence_cut + 24 / work.degrees.tp);
  return work.recompute == RecomputeKind::kSelective ? all : all + scores;
}

// Micro-batches that a stage has begun and not finished: the first one waits for all others, the
// last one for nobody. With chunks, micro-batches that wait for their next one come on top.
double in_flight(const Work& work, bool first) {
  const Degrees& degrees = work.degrees;
  const double micros = work.batch.micros;
  if (degrees.pp <= 1) return 1;
  if (degrees.gpipe) return micros;
  if (!first) return std::min(micros, ((degrees.chunks - 1) * degrees.pp + 1) / degrees.chunks);
  const double stages = std::min(micros, degrees.pp);
  return degrees.chunks > 1 ? stages * (1 + (degrees.pp - 1) / degrees.pp / degrees.chunks)
                            : stages;
}

double logit_bytes(const Work& work, const RankShare& rank, const MemoryConstants& constants) {
  const double each = work.software.compiled ? constants.logit_bytes : constants.logit_bytes_eager;
  return rank.tokens * work.shape.vocab * each / (work.software.dtensor ? 1 : work.degrees.tp);
}

double gathered_bytes(const Work& work, double parameters, const MemoryConstants& constants) {
  const double n = work.degrees.fsdp;
  if (n <= 1) return 0;
  double copies = work.batch.micros > 1 ? constants.unsharded_accumulating : constants.unsharded;
  if (work.software.late_wrap) copies += constants.late_wrap;
  return copies * 2 * parameters * (1 - 1 / n);
}

}  // namespace

MemoryNeed memory_need(const Work& work, const MemoryConstants& constants) {
  const Shape& shape = work.shape;
  const Degrees& degrees = work.degrees;
  const RankShare rank = rank_share(work, Constants{});  // sizes only: no rate is looked at
  if (work.software.framework == Framework::kAssay) return trainer_memory(work, rank);
  const double experts = rank.expert_parameters * shape.layers;
  const double parameters =
      ((shape.parameters - experts) / degrees.tp + experts / degrees.ep / rank.expert_cut) /
      degrees.pp;
  const StateBytes state = state_bytes(work);
  const double scores = work.software.flash
                            ? 0
                            : 5 * work.batch.micro_batch * shape.heads / degrees.tp *
                                  work.batch.sequence * work.batch.sequence;
  const bool recomputes = work.recompute != RecomputeKind::kNone;
  // A mixture's tokens, once per expert that they visit, and what the expert makes of them.
  const double routed =
      rank.moe_share * 2 * rank.tokens * shape.copies() * (2 * shape.dim + 3 * shape.expert_ffn);
  const double kept_routed = work.recompute == RecomputeKind::kFull ? 0
                             : rank.naive_experts ? constants.moe_activation * routed
                                                  : routed;
  const double at_work = constants.work * 34 * rank.tokens * shape.dim / rank.sequence_cut + scores;

  MemoryNeed need;
  need.parameters = whole_bytes(parameters * state.weight / degrees.fsdp);
  need.gradients = whole_bytes(parameters * state.gradient / degrees.fsdp);
  need.optimizer = whole_bytes(parameters * state.optimizer / degrees.fsdp);
  need.gathered = whole_bytes(gathered_bytes(work, parameters, constants));
  const double kept = (kept_bytes(work, rank, scores) + kept_routed) * shape.layers / degrees.pp;
  const double logits = logit_bytes(work, rank, constants);
  const double first = kept * in_flight(work, true) + (degrees.pp > 1 ? 0 : logits);
  const double last = kept * in_flight(work, false) + logits;
  need.activations = whole_bytes(std::max(first, last));
  need.stage = last > first ? degrees.pp - 1 : 0;
  need.workspace = whole_bytes(at_work * (recomputes ? 1 : 0.3) +
                               constants.moe_activation * routed + constants.base_gib * kGib);
  return need;
}

}  // namespace assay::plan
