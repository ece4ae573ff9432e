#include "plan/model/layer_time.h"

#include <algorithm>

#include "plan/model/exchange_time.h"
#include "plan/model/layer_pieces.h"
#include "plan/model/mixture_time.h"

namespace assay::plan {
namespace {

using step::CollectiveKind;

// Operators of a layer's forward pass; as many again in a mixture, and some for collectives. The
// backward pass has twice as many.
constexpr double kOperators = 30;
constexpr double kMixtureOperators = 30;
constexpr double kCollectiveOperators = 4;
constexpr double kUnbatchedExpertOperators = 6;  // one product per expert
// A third of the host's time for a mixture does not depend on the number of experts of a rank, and
// as much again comes with every kExpertsOfHalf of them: their weights are separate tensors, which
// are listed, cast and hooked one by one. That was measured without graphs up to kMeasuredExperts;
// the products of further experts are in the same two calls, which start kernels for each of them.
constexpr double kExpertsOfHalf = 8;
constexpr double kMeasuredExperts = 16;
constexpr double kFurtherExpert = 2 * 5e-6;  // seconds: a kernel of each product

// What each layer and direction pays for tensor parallelism: two sums, or as many pairs of
// scattering and gathering, and ranks that wait for each other.
struct TensorExchange {
  double all_reduce = 0;
  double exposed = 1;
  double skew = 0;
};

TensorExchange tensor_exchange(const Work& work, const RankShare& rank,
                               const Constants& constants) {
  TensorExchange t;
  const double tp = work.degrees.tp;
  if (tp <= 1) return t;
  const double bytes = 2 * rank.tokens * work.shape.dim;
  const auto seconds = [&](CollectiveKind kind) {
    return exchange_seconds(kind, bytes, {.ranks = tp}, work.links, constants);
  };
  // Our trainer exchanges the addends, adds them itself, and gathers the sums.
  if (folds_gradients(work)) {
    t.all_reduce = seconds(CollectiveKind::kAllToAll) + seconds(CollectiveKind::kAllGather) +
                   bytes * (1 + 1 / tp) / rank.memory_rate;
  } else {
    t.all_reduce = work.degrees.sequence_parallel ? seconds(CollectiveKind::kReduceScatter) +
                                                        seconds(CollectiveKind::kAllGather)
                                                  : seconds(CollectiveKind::kAllReduce);
  }
  if (work.software.dtensor) t.all_reduce *= constants.dtensor_tp;
  if (work.software.overlaps_tensor) t.exposed = 1 - constants.tp_overlap;
  t.skew = 2 * constants.tp_sync_us * 1e-6 * (tp - 1) * t.exposed;
  if (work.software.compiled) t.skew *= 0.5;
  return t;
}

// Keys and values, of two bytes each, go round the ranks of a sequence beside attention.
double context_seconds(const Work& work, const RankShare& rank, const Constants& constants) {
  const Degrees& degrees = work.degrees;
  if (degrees.cp <= 1) return 0;
  const double bytes =
      4 * rank.tokens * work.shape.kv_heads * work.shape.head_dim / degrees.tp * degrees.cp;
  return exchange_seconds(CollectiveKind::kAllGather, bytes, {degrees.cp, degrees.tp}, work.links,
                          constants);
}

// Forward times of the MLP's products, at the sustained clock.
struct MlpProducts {
  double up = 0;
  double down = 0;
  double dense_down = 0;  // of layers that are no mixtures
};

// What the backward pass computes again.
LayerTime again(const Work& work, const LayerTime& forward, const LayerPasses& passes,
                const MlpProducts& mlp, double dense_share) {
  LayerTime t;
  switch (work.recompute) {
    case RecomputeKind::kNone:
      break;
    case RecomputeKind::kCheap:
      t.passes = passes.norms + passes.activation;
      break;
    case RecomputeKind::kFfn:
      t.passes = passes.norms + passes.activation;
      t.products = mlp.up;
      break;
    case RecomputeKind::kSelective:
      if (!work.software.flash) {
        t.attention = forward.attention;
      } else if (work.software.recomputes_products) {
        t.passes = passes.total;
        t.products = 0.5 * forward.products;
      } else {
        t.passes = 0.3 * passes.total;
      }
      if (work.software.flash && work.recomputed.attention) t.attention = forward.attention;
      if (work.recomputed.mlp && !work.shape.is_moe()) t.products = mlp.up + mlp.down;
      if (work.recomputed.experts && work.shape.is_moe()) {
        t.products = mlp.up + mlp.down;
        t.routing = forward.routing;
        t.experts = forward.experts;
      }
      break;
    case RecomputeKind::kFull:
      t = forward;
      if (work.software.stops_early) {
        // Nothing reads the layer's own result, nor the sum that completes it. Results of experts
        // are read: their weights' gradients need them.
        t.passes -= passes.result;
        t.products -= mlp.dense_down;
        t.tensor *= 1 - dense_share / 2;
      }
      break;
  }
  return t;
}

// The device waits for the host's launches, or the host for the device.
void add_host(double operators, double experts_host, const RankShare& rank,
              const Constants& constants, LayerTime& time) {
  const double device = time.total();
  const double gaps = operators * constants.gap_us * 1e-6 * rank.operators_kept;
  time.host = smooth_max(device + gaps, operators * rank.host_per_operator + experts_host) - device;
}

}  // namespace

LayerTime& LayerTime::operator+=(const LayerTime& other) {
  products += other.products;
  attention += other.attention;
  passes += other.passes;
  routing += other.routing;
  tensor += other.tensor;
  context += other.context;
  experts += other.experts;
  host += other.host;
  return *this;
}

LayerTime& LayerTime::operator*=(double factor) {
  for (double LayerTime::*part :
       {&LayerTime::products, &LayerTime::attention, &LayerTime::passes, &LayerTime::routing,
        &LayerTime::tensor, &LayerTime::context, &LayerTime::experts, &LayerTime::host}) {
    this->*part *= factor;
  }
  return *this;
}

LayerTimes layer_times(const Work& work, const RankShare& rank, const Constants& constants) {
  LayerProducts products = layer_products(work, rank, constants);
  const double dense_down = products.down;
  MixtureTime mixture;
  if (rank.moe_share > 0) {
    mixture = mixture_time(work, rank, constants);
    products.all.forward += rank.moe_share * mixture.products.forward;
    products.all.backward += rank.moe_share * mixture.products.backward;
    products.up += rank.moe_share * mixture.up;
    products.down += rank.moe_share * mixture.down;
  }
  const AttentionTime attention = attention_time(work, rank, constants);
  const LayerPasses passes = layer_passes(work, rank, constants);
  const TwoWays parameters = parameter_passes(work, rank, constants);
  const TensorExchange tensor = tensor_exchange(work, rank, constants);
  const double context = context_seconds(work, rank, constants);
  const bool full = work.recompute == RecomputeKind::kFull;

  // How busy tensor cores are: their share of forward and backward time at full clock.
  const double operators = kOperators + rank.moe_share * kMixtureOperators;
  const double cores =
      3 * products.all.forward + attention.cores.forward + attention.cores.backward;
  const double others = 3 * passes.total + attention.memory.forward + attention.memory.backward +
                        4 * tensor.all_reduce * tensor.exposed +
                        3 * operators * constants.gap_us * 1e-6 * rank.operators_kept;
  const double host = 3 * kOperators * rank.host_per_operator;
  LayerTimes times;
  times.clock = sustained_clock(cores / smooth_max(cores + others, host), work.card, constants);
  times.all_reduce = tensor.all_reduce;

  LayerTime& forward = times.forward;
  forward.products = products.all.forward / times.clock;
  forward.attention = attention.cores.forward / times.clock + attention.memory.forward;
  forward.passes = passes.total;
  forward.routing = rank.moe_share * mixture.permutation;
  forward.experts = rank.moe_share * mixture.all_to_all;
  forward.tensor = 2 * tensor.all_reduce * tensor.exposed;
  forward.context = unhidden_seconds(context, forward.attention, constants.fsdp_slow);

  LayerTime& backward = times.backward;
  const MlpProducts mlp = {products.up / times.clock, products.down / times.clock,
                           dense_down / times.clock};
  backward = again(work, forward, passes, mlp, 1 - rank.moe_share);
  backward.products += products.all.backward / times.clock;
  const double attention_backward =
      attention.cores.backward / times.clock + attention.memory.backward;
  backward.attention += attention_backward;
  backward.passes += 2 * forward.passes + parameters.backward;
  backward.routing += 2 * forward.routing;
  backward.experts += forward.experts;
  backward.tensor += forward.tensor;
  // Keys and values once more, and their gradients.
  backward.context += unhidden_seconds(2 * context, attention_backward, constants.fsdp_slow);
  forward.passes += parameters.forward;

  double launched = operators + (work.degrees.tp > 1 ? kCollectiveOperators : 0);
  if (work.software.unbatched_experts)
    launched += rank.moe_share * rank.local_experts * kUnbatchedExpertOperators;
  const Software& software = work.software;
  // Without grouped products each expert has separate operators.
  const double one_by_one = rank.local_experts * kUnbatchedExpertOperators * rank.host_per_operator;
  const double measured = std::min(rank.local_experts, kMeasuredExperts);
  const double further = (rank.local_experts - measured) * kFurtherExpert;
  const double grouped =
      (constants.moe_host_us * 1e-6 * (1 + measured / kExpertsOfHalf) / 3 + further) *
      (1 - software.graphed_experts);
  const double experts_host =
      software.hostless ? 0 : rank.moe_share * (rank.naive_experts ? one_by_one : grouped);
  add_host(launched, experts_host, rank, constants, forward);
  add_host((full ? 3 : 2) * launched, (full ? 3 : 2) * experts_host, rank, constants, backward);
  forward.tensor += tensor.skew;
  backward.tensor += tensor.skew * (full ? 2 : 1);
  return times;
}

}  // namespace assay::plan
