#include "plan/model/rank_share.h"

#include <algorithm>

namespace assay::plan {
namespace {

// A layer is gathered while another is at work, and the gradients of a third are reduced.
constexpr double kUnitsUnsharded = 3;
// Of tensors that are gathered one by one, the largest is a third of a layer.
constexpr double kTensorsUnsharded = 3;
constexpr double kEndsUnsharded = 2;  // weights and gradients
constexpr double kUnshardedBytes = 2;

}  // namespace

RankShare rank_share(const Work& work, const Constants& constants) {
  const Shape& shape = work.shape;
  const Degrees& degrees = work.degrees;
  const Card& card = work.card;
  const Software& software = work.software;

  RankShare r;
  r.tokens = work.batch.sequence * work.batch.micro_batch / degrees.cp;
  r.routed_tokens = r.tokens;
  r.sequence_cut = degrees.sequence_parallel ? degrees.tp : 1;
  r.qkv = shape.qkv / degrees.tp;
  r.ffn = shape.ffn;
  r.trained = !work.lora;

  const double reached = constants.gemm_eff *
                         (software.first_year_kernels ? constants.young_eff : 1) *
                         (card.generation == Generation::kAmd ? constants.amd_eff : 1);
  r.head = {card.bf16_flops.count() * reached, card.multiprocessors};
  r.products = r.head;
  if (work.fp8) r.products.flops = card.fp8_flops.count() * reached * constants.fp8_eff;
  if (work.fp4 && card.fp4_flops > card.fp8_flops)
    r.products.flops = card.fp4_flops.count() * reached * constants.fp4_eff;
  r.memory_rate = card.memory_rate.count() * constants.mem_eff;
  r.operators_kept = software.fused ? constants.host_comp : 1;
  r.host_per_operator =
      software.hostless ? 0 : constants.host_us * 1e-6 * r.operators_kept * (1 - software.graphed);

  r.expert_cut = degrees.tp;
  if (shape.is_moe()) {
    r.moe_share = shape.moe_layers / shape.layers;
    r.ffn = shape.copies() * std::max(shape.expert_ffn, 1.0) * r.moe_share +
            shape.ffn * (1 - r.moe_share);
    r.naive_experts = software.naive_experts;
    r.local_experts = std::max(1.0, shape.experts / degrees.ep);
    r.expert_parameters =
        r.moe_share * shape.mlp_matrices * shape.expert_width() * shape.experts * shape.expert_ffn;
    r.experts_over_tensor = !r.naive_experts && software.framework != Framework::kAssay &&
                            degrees.sequence_parallel && !degrees.experts_cut && degrees.ep > 1 &&
                            !degrees.ep_axis;
    if (r.naive_experts || r.experts_over_tensor) r.expert_cut = 1;
    r.gathers_rows = !r.naive_experts && degrees.sequence_parallel && degrees.experts_cut;
    if (!r.naive_experts && degrees.sequence_parallel && !r.gathers_rows)
      r.routed_tokens /= degrees.tp;
  }
  return r;
}

double expert_holders(const Degrees& degrees, const RankShare& rank, double ranks) {
  if (degrees.ep_axis) return ranks;
  return std::max(1.0, ranks * (rank.experts_over_tensor ? degrees.tp : 1) / degrees.ep);
}

double expert_holders_apart(const Degrees& degrees, const RankShare& rank) {
  return rank.experts_over_tensor ? degrees.ep : sharers_apart(degrees) * degrees.ep;
}

double unsharded_units(const Work& work, const RankShare& rank) {
  const Shape& shape = work.shape;
  const Degrees& d = work.degrees;
  const double experts = rank.expert_parameters * shape.layers;
  const double body = (shape.body_parameters - experts) / d.tp + experts / d.ep / rank.expert_cut;
  const double ends = std::max(0.0, shape.parameters - shape.body_parameters) / d.tp;
  // The first stage of a pipeline has the embedding, the last the head.
  const double end = ends / (d.pp > 1 && !shape.tied ? 2 : 1);
  const double units = work.software.zero3_by_tensor ? kTensorsUnsharded : d.units;
  return kUnshardedBytes * (kUnitsUnsharded * body / shape.layers / units + kEndsUnsharded * end);
}

}  // namespace assay::plan
