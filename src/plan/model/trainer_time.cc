#include "plan/model/trainer_time.h"

#include "plan/model/exchange_time.h"

namespace assay::plan {
namespace {

constexpr double kUsualHead = 128;  // for which attn_eff is known
// Between ranks whose host compiles nothing while it waits.
constexpr double kSyncShare = 0.5;

// Forward, recomputed and backward, at full clock.
struct PhaseTimes {
  LayerTime forward;
  LayerTime again;
  LayerTime backward;

  void add(double LayerTime::*part, const ByPhase& times, double each) {
    forward.*part += times.forward * each;
    again.*part += times.again * each;
    backward.*part += times.backward * each;
  }
};

// Each expert's rows fill whole tiles; one launch does all of them.
double seconds_of(const StepProduct& p, const RankShare& rank, const Constants& constants) {
  const ProductRate& rate = p.fp8 ? rank.products : rank.head;
  double m = p.m;
  double k = p.k;
  if (p.groups > 1 && p.groups_share_k) k /= p.groups;
  if (p.groups > 1 && !p.groups_share_k) {
    m = tiled_rows(p.groups, m / p.groups);
  }
  return product_seconds(m, p.n, k, rate, constants) * (p.fp8 ? 1 : constants.own_gemm);
}

class Pricing {
 public:
  Pricing(const Work& work, const RankShare& rank, const Constants& constants)
      : work_(work), rank_(rank), constants_(constants) {}

  [[nodiscard]] PhaseTimes times_of(const StepPieces& pieces) const {
    PhaseTimes t;
    for (const StepProduct& product : pieces.products) {
      t.add(&LayerTime::products, product.times, seconds_of(product, rank_, constants_));
    }
    // What softmax costs does not shrink with the width of heads.
    const double softmax = constants_.own_softmax;
    const double rate = rank_.head.flops * constants_.attn_eff * (1 + softmax / kUsualHead) /
                        (1 + softmax / work_.shape.head_dim);
    t.forward.attention = pieces.attention.forward / rate;
    t.again.attention = pieces.attention.again / rate;
    t.backward.attention = pieces.attention.backward / (rate * constants_.attn_bwd);
    for (const StepPass& pass : pieces.passes) {
      t.add(part_of(pass.kind), pass.times,
            constants_.own_pass * pass.bytes * cache_miss(pass.bytes, work_.card.cache) /
                rank_.memory_rate);
    }
    for (const StepCall& call : pieces.calls) add_call(call, t);
    t.add(&LayerTime::host, pieces.operators, constants_.gap_us * 1e-6);
    return t;
  }

 private:
  static double LayerTime::*part_of(PassKind kind) {
    switch (kind) {
      case PassKind::kRouting:
        return &LayerTime::routing;
      case PassKind::kSums:
        return &LayerTime::tensor;
      case PassKind::kElements:
        break;
    }
    return &LayerTime::passes;
  }

  void add_call(const StepCall& call, PhaseTimes& t) const {
    const Degrees& d = work_.degrees;
    const auto seconds = [&](const Axis& axis) {
      return exchange_seconds(call.kind, call.bytes, axis, work_.links, constants_);
    };
    if (call.axis == step::Axis::kContext) {
      // Beside attention; what slows it is paid.
      return t.add(&LayerTime::context, call.times, constants_.fsdp_slow * seconds({d.cp, d.tp}));
    }
    t.add(&LayerTime::tensor, call.times, seconds({.ranks = d.tp}));
    // Ranks wait for each other where they exchange addends; then they are together.
    if (call.kind == step::CollectiveKind::kAllToAll) {
      t.add(&LayerTime::tensor, call.times, kSyncShare * constants_.tp_sync_us * 1e-6 * (d.tp - 1));
    }
  }

  const Work& work_;
  const RankShare& rank_;
  const Constants& constants_;
};

void add_share(const LayerTime& time, double share, LayerTime& sum) {
  LayerTime part = time;
  part *= share;
  sum += part;
}

void at_clock(LayerTime& time, double clock) {
  time.products /= clock;
  time.attention /= clock;
}

}  // namespace

LayerTimes trainer_layer_times(const Work& work, const TrainerStep& step, const RankShare& rank,
                               const Constants& constants) {
  const Pricing pricing(work, rank, constants);
  PhaseTimes mean;
  const auto add = [&](const StepPieces& pieces, double share) {
    if (share <= 0) return;
    const PhaseTimes of_one = pricing.times_of(pieces);
    add_share(of_one.forward, share, mean.forward);
    add_share(of_one.again, share, mean.again);
    add_share(of_one.backward, share, mean.backward);
  };
  add(step.dense, 1 - rank.moe_share);
  add(step.mixture, rank.moe_share);

  // How busy tensor cores are: their share of forward and backward time at full clock.
  LayerTime both = mean.forward;
  both += mean.backward;
  LayerTimes times;
  times.clock =
      sustained_clock((both.products + both.attention) / both.total(), work.card, constants);
  times.forward = mean.forward;
  times.backward = mean.backward;
  add_share(mean.again, 1 - 1 / work.shape.layers, times.backward);
  at_clock(times.forward, times.clock);
  at_clock(times.backward, times.clock);
  return times;
}

LayerTime trainer_ends_time(const Work& work, const TrainerStep& step, const RankShare& rank,
                            double clock, const Constants& constants) {
  PhaseTimes t = Pricing(work, rank, constants).times_of(step.ends);
  LayerTime both = t.forward;
  both += t.backward;
  at_clock(both, clock);
  return both;
}

}  // namespace assay::plan
