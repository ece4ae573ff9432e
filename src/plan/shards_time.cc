#include "plan/shards_time.h"

#include <algorithm>

#include "plan/links_time.h"

namespace assay::plan {
namespace {

constexpr double kTensorsPerLayer = 12;  // that ZeRO-3 of 2021 gathers one by one
constexpr double kEndsExposed = 0.5;     // of the first and last gather
constexpr double kGradientBuckets = 20;
constexpr double kLoraShare = 0.003;  // of the model's parameters, in adapters

// Sharded Muon with AdamW: bytes per parameter that pass a rank in a step, reduced and gathered;
// 11.46 GB of nanochat's d26.
constexpr double kMuonBytes = 11.46 / 1.68;
// Newton-Schulz: flops per parameter and element of a matrix's width, of five iterations, and the
// rate that its products reach.
constexpr double kMuonFlops = 40.0 / 12;
constexpr double kMuonRate = 0.6;

// Ranks that hold the same expert, of those that hold the same dense layer.
double expert_replicas(const Degrees& degrees, double ranks) {
  return degrees.ep_axis ? ranks : std::max(1.0, ranks / degrees.ep);
}

}  // namespace

ShardsTime shards_time(const Work& work, const RankShare& rank, double forward, double backward,
                       const Constants& constants) {
  const Degrees& degrees = work.degrees;
  const Software& software = work.software;
  const double n = degrees.fsdp;
  if (n <= 1) return {};
  const double apart = degrees.tp * degrees.cp * (degrees.ep_axis ? degrees.ep : 1);
  RingPace pace = ring_pace(n, apart, work.links, constants);
  if (software.zero3_by_tensor) pace.latency *= kTensorsPerLayer;
  const bool exposed = software.zero3_by_tensor || rank.naive_experts;
  if (exposed) pace.bandwidth *= constants.zero3_bw;

  const double holders = expert_replicas(degrees, n);
  const double dense = work.shape.body_parameters / work.shape.layers - rank.expert_parameters;
  const double sent = dense / degrees.tp * (n - 1) / n + rank.expert_parameters / rank.expert_cut /
                                                             degrees.ep * (holders - 1) / holders;
  const double gather = 2 * sent / pace.bandwidth + pace.latency;
  const double reduce =
      rank.trained ? software.gradient_bytes * sent / pace.bandwidth + pace.latency : 0;
  const auto unhidden = [&](double compute, double exchange) {
    if (exposed) return exchange;
    return std::max(0.0, exchange - compute) + constants.fsdp_slow * std::min(compute, exchange);
  };
  const double end_bytes = 4 + (rank.trained ? software.gradient_bytes : 0);
  return {.forward = unhidden(forward, gather),
          .backward = unhidden(backward, (software.gathers_once ? 0 : gather) + reduce),
          .ends = kEndsExposed * end_bytes * work.shape.vocab * work.shape.dim / degrees.tp *
                  (n - 1) / n / pace.bandwidth};
}

double trained_parameters(const Work& work, const RankShare& rank) {
  const Shape& shape = work.shape;
  const Degrees& degrees = work.degrees;
  const double experts = rank.expert_parameters * shape.layers;
  const double untied = shape.tied ? 1 : 2;
  const double held = (shape.body_parameters - experts) / degrees.tp / degrees.pp +
                      experts / rank.expert_cut / degrees.pp / degrees.ep +
                      // Of a pipeline's stages the first and the last have one table each.
                      shape.vocab * shape.dim / degrees.tp * (degrees.pp > 1 ? 0.6 : untied);
  if (work.lora) return kLoraShare * held;
  return work.muon ? shape.parameters / degrees.tp / degrees.pp : held;
}

double gradients_seconds(const Work& work, const RankShare& rank, double parameters,
                         double backward, const Constants& constants) {
  const Degrees& degrees = work.degrees;
  const Software& software = work.software;
  // Ranks of an axis of experts read tokens of their own and have the same dense layers.
  const double same_experts = degrees.dp * degrees.cp;
  const double n = same_experts * (degrees.ep_axis ? degrees.ep : 1);
  if (n <= 1) return 0;
  // Replicas of shards reduce a shard each, and the shards lie between them.
  parameters /= degrees.fsdp;
  const double apart = degrees.tp * (degrees.dp > 1 ? degrees.fsdp : 1);
  const RingPace pace = ring_pace(n, apart, work.links, constants);
  double seconds = 0;
  if (work.muon) {
    seconds = kMuonBytes * parameters * (n - 1) / n / pace.bandwidth;
  } else {
    // Gradients reduced and weights gathered, or gradients summed.
    const double bytes =
        software.shards_optimizer ? software.gradient_bytes + 2 : 2 * software.gradient_bytes;
    const double experts = degrees.ep > 1 && rank.trained
                               ? rank.expert_parameters * work.shape.layers / rank.expert_cut /
                                     degrees.pp / degrees.ep / degrees.fsdp
                               : 0;
    seconds = bytes * std::max(0.0, parameters - experts) * (n - 1) / n / pace.bandwidth +
              kGradientBuckets * pace.latency;
    if (experts > 0) {
      const double holders = expert_replicas(degrees, same_experts);
      const RingPace far = ring_pace(holders, apart * degrees.ep, work.links, constants);
      seconds += bytes * experts * (holders - 1) / holders / far.bandwidth;
    }
  }
  if (!software.overlaps_gradients) return seconds;
  return (1 - constants.dp_overlap) * seconds +
         std::max(0.0, constants.dp_overlap * seconds - backward);
}

double optimizer_seconds(const Work& work, const RankShare& rank, double parameters,
                         const Constants& constants) {
  const Degrees& degrees = work.degrees;
  const double replicas = state_shards(work);
  const double shard = parameters / replicas / degrees.fsdp;
  double seconds = shard * constants.opt_bytes * work.software.optimizer_traffic / rank.memory_rate;
  if (work.muon && rank.trained) {
    const double ranks = replicas * degrees.fsdp * degrees.tp * degrees.pp;
    const double flops = kMuonFlops * work.shape.body_parameters * work.shape.dim / ranks;
    const double clock = sustained_clock(1, work.card, constants);  // products and nothing else
    seconds += flops / (rank.head.flops * kMuonRate) / clock;
  }
  return seconds;
}

}  // namespace assay::plan
