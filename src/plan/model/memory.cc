#include "plan/model/memory.h"

#include <algorithm>

#include "plan/model/fsdp_memory.h"
#include "plan/model/pipeline.h"
#include "plan/model/rank_share.h"
#include "plan/model/stages.h"
#include "plan/model/trainer_memory.h"

namespace assay::plan {
namespace {

constexpr double kGib = 1024.0 * 1024 * 1024;
// Of Mamba-2: results of the convolution and of the scan, in widths of the heads that stand for it
// (calibrate/row_models.cc), which are twice as wide as its own.
constexpr double kStateElements = 1;
// Bytes per weight that Transformer Engine holds from a step's first micro-batch on: fp8, and the
// same transposed.
constexpr double kQuantisedCopies = 2;
constexpr double kLogitChunks = 8;  // that llm.q computes one after the other

StateBytes whole_state_bytes(const Work& work) {
  const Software& software = work.software;
  if (work.lora) return {.weight = 2};
  // Matrices stay in fp32 and are cast where they are used; so are their gradients.
  if (software.framework == Framework::kNanochat) return {6, 4, 4};
  if (software.framework == Framework::kLlmq) return {2, 2, 4};
  if (software.pure_bf16) return {2, 2, 4};
  if (software.keeps_both_gradients) return {2, 6, software.optimizer_bytes};
  if (software.shards_optimizer) return {2, software.gradient_bytes, software.optimizer_bytes};
  // FSDP shards weights in fp32, which are their own masters; a replica has both, and fp32
  // gradients.
  return work.degrees.fsdp > 1 ? StateBytes{4, 4, 8} : StateBytes{2, 4, 12};
}

StateBytes state_bytes(const Work& work) {
  StateBytes state = whole_state_bytes(work);
  if (work.fp8 && work.software.quantised_copies && !work.lora) state.weight += kQuantisedCopies;
  return state;
}

// Of bf16's bytes, what an input of a product is kept in.
double kept_input(const Work& work) {
  return work.fp8 && work.software.fused && work.software.framework != Framework::kAssay ? 0.5 : 1;
}

// Width of the MLP that every token passes, mean over layers.
double dense_ffn(const Work& work, const RankShare& rank) {
  return (1 - rank.moe_share) * work.shape.ffn + rank.moe_share * work.shape.shared_ffn;
}

// Kept per layer from the forward pass, bytes of one micro-batch; without what experts keep.
double kept_bytes(const Work& work, const RankShare& rank, double scores) {
  const Shape& shape = work.shape;
  const double tp = work.degrees.tp;
  const double width = shape.dim / rank.sequence_cut;
  const double ffn = dense_ffn(work, rank) / tp;
  const double attention = shape.attention_out / tp;
  const auto bytes = [&](double elements) { return 2 * rank.tokens * elements; };
  if (work.recompute == RecomputeKind::kFull) return bytes(width);
  const RecomputedModules& again = work.recomputed;
  // The stream before attention and before the MLP, what norms make of it, queries, keys, values
  // and their result, and the MLP before and after its activation.
  // Inputs of products in fp8 are kept as they are multiplied.
  const double input = kept_input(work);
  double all = bytes((2 + 2 * input) * width + rank.qkv + input * attention +
                     (shape.mlp_matrices - 1 + input) * ffn);
  if (work.software.megatron_fused) all += 2 * rank.tokens * width;  // masks of two dropouts
  all += bytes(shape.state_share * kStateElements * attention);
  // Queries and keys before their norms, too.
  if (work.software.framework == Framework::kNanochat) all += bytes(2 * attention);
  if (work.recompute != RecomputeKind::kSelective) return all + scores;
  if (!work.software.flash) return all;
  if (work.software.recomputes_products) {
    // Every other product and all passes are made again.
    const double products = rank.qkv + (shape.mlp_matrices - 1) * ffn + 2 * width;
    return bytes(width + products / 2 + attention);
  }
  // Results of norms and of the activation, and of modules that are computed again.
  double dropped = input * (2 * width + ffn);
  if (again.mlp) dropped += (shape.mlp_matrices - 1) * ffn;
  if (again.attention) dropped += input * attention;
  return all - bytes(dropped);
}

double logit_bytes(const Work& work, const RankShare& rank, const MemoryConstants& constants) {
  const bool fused = work.software.compiled || work.software.fused_loss;
  double each = fused ? constants.logit_bytes : constants.logit_bytes_eager;
  if (work.software.framework == Framework::kLlmq) each /= kLogitChunks;
  return rank.tokens * work.shape.vocab * each /
         (work.software.gathers_logits ? 1 : work.degrees.tp);
}

// What FSDP has unsharded, of `parameters` that a rank has with the others of its group.
double gathered_bytes(const Work& work, const RankShare& rank, double parameters,
                      const MemoryConstants& constants) {
  const Software& software = work.software;
  const double n = work.degrees.fsdp;
  if (n <= 1) return 0;
  const double units = unsharded_units(work, rank);
  if (software.gathers_once) return std::max(units, 2 * parameters);
  if (!software.keeps_unsharded) return units;
  double copies = work.batch.micros > 1 ? constants.unsharded_accumulating : constants.unsharded;
  if (software.late_wrap) copies += constants.late_wrap;
  return units + copies * 2 * parameters * (1 - 1 / n);
}

}  // namespace

MemoryNeed memory_need(const Work& work, const MemoryConstants& constants) {
  const Shape& shape = work.shape;
  const Degrees& degrees = work.degrees;
  const RankShare rank = rank_share(work, Constants{});  // sizes only: no rate is used
  if (work.software.framework == Framework::kAssay) return trainer_memory(work, rank);
  if (has_fsdp_moments(work))
    return fsdp_memory(work, rank, state_bytes(work), constants.base_gib * kGib);
  const double experts = rank.expert_parameters * shape.layers;
  const StateBytes state = state_bytes(work);
  const double scores = work.software.flash
                            ? 0
                            : 5 * work.batch.micro_batch * shape.heads / degrees.tp *
                                  work.batch.sequence * work.batch.sequence;
  const bool recomputes = work.recompute != RecomputeKind::kNone;
  // A mixture's tokens, once per expert that they visit, and what the expert makes of them before
  // its last product: weights of routing are applied there, so that the result is not needed.
  const double routed = rank.moe_share * 2 * rank.routed_tokens * shape.copies() *
                        (kept_input(work) * shape.expert_width() +
                         (shape.mlp_matrices - 1 + kept_input(work)) * shape.expert_ffn);
  const double experts_at_work = (rank.naive_experts ? constants.moe_activation : 1) * routed;
  const bool made_again = work.recompute == RecomputeKind::kFull || work.recomputed.experts;
  const double kept_routed = made_again ? 0 : experts_at_work;
  const double at_work = constants.work * 34 * rank.tokens * shape.dim / rank.sequence_cut + scores;
  const double base =
      work.software.keeps_unsharded ? constants.base_gib_unsharded : constants.base_gib;

  const double kept = kept_bytes(work, rank, scores) + kept_routed;  // of a layer
  const auto needed_by = [&](double stage, double layers, double ends, double in_flight,
                             double logits) {
    // Fewer ranks share the same experts, and their state, than share the rest.
    const double of_all = layers / shape.layers;
    const double shared =
        (shape.body_parameters - experts) / degrees.tp * of_all + ends / degrees.tp;
    const double local_experts = experts / degrees.ep / rank.expert_cut * of_all;
    const auto divided_by = [&](double sharers) {
      const double holders = sharers > 1 ? expert_holders(degrees, rank, sharers) : 1;
      return shared / sharers + local_experts / holders;
    };
    const double gradient_sharers = degrees.fsdp * std::max(1.0, degrees.gradient_shards);
    MemoryNeed need;
    need.stage = stage;
    need.parameters = whole_bytes(divided_by(degrees.fsdp) * state.weight);
    need.gradients = whole_bytes(divided_by(gradient_sharers) * state.gradient);
    need.optimizer = whole_bytes(divided_by(state_shards(work) * degrees.fsdp) * state.optimizer);
    need.gathered = whole_bytes(gathered_bytes(work, rank, shared + local_experts, constants));
    need.activations = whole_bytes(kept * layers * in_flight + logits);
    need.workspace = whole_bytes(at_work * (recomputes ? 1 : 0.3) + experts_at_work + base * kGib);
    return need;
  };
  // Of a pipeline's stages, the first and the last have a table each.
  const double ends = std::max(0.0, shape.parameters - shape.body_parameters);
  const double logits = logit_bytes(work, rank, constants);
  if (degrees.pp <= 1) return needed_by(0, shape.layers, ends, 1, logits);
  const double end = shape.tied ? ends : ends / 2;
  const StageLayers stages = stage_layers(work);
  const double begun = micros_in_flight(work, /*last=*/false);
  const auto larger = [](const MemoryNeed& a, const MemoryNeed& b) {
    return a.total() < b.total() ? b : a;
  };
  MemoryNeed most = larger(
      needed_by(0, stages.first, end, begun, 0),
      needed_by(degrees.pp - 1, stages.last, end, micros_in_flight(work, /*last=*/true), logits));
  // The second stage has begun fewer micro-batches than the first, unless none waits for another.
  if (stages.most > stages.first && degrees.pp > 2) {
    const bool fewer = !degrees.gpipe && !degrees.zero_bubble && work.batch.micros >= degrees.pp;
    const double next = fewer ? (degrees.pp - 1) / degrees.pp : 1;
    most = larger(most, needed_by(1, stages.most, 0, begun * next, 0));
  }
  return most;
}

}  // namespace assay::plan
