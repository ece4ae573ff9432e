#include "plan/model/trainer_time.h"

#include "plan/model/exchange_time.h"

namespace assay::plan {

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

// All that the time of a device depends on, beside the pieces themselves.
struct DeviceRates {
  double products = 0;
  double head = 0;
  double multiprocessors = 0;
  double memory = 0;
  double head_dim = 0;
  base::Bytes cache;
  Constants constants;

  bool operator==(const DeviceRates&) const = default;
};

struct DeviceTimes {
  DeviceRates rates;
  PhaseTimes dense;
  PhaseTimes mixture;
  PhaseTimes ends;
};

namespace {

constexpr double kUsualHead = 128;  // for which attn_eff is known
// Between ranks whose host compiles nothing while it waits.
constexpr double kSyncShare = 0.5;

DeviceRates rates_of(const Work& work, const RankShare& rank, const Constants& constants) {
  return {.products = rank.products.flops,
          .head = rank.head.flops,
          .multiprocessors = rank.head.multiprocessors,
          .memory = rank.memory_rate,
          .head_dim = work.shape.head_dim,
          .cache = work.card.cache,
          .constants = constants};
}

// Each expert's rows fill whole tiles; one launch does all of them.
double seconds_of(const StepProduct& p, const DeviceRates& rates) {
  const ProductRate rate{p.fp8 ? rates.products : rates.head, rates.multiprocessors};
  double m = p.m;
  double k = p.k;
  if (p.groups > 1 && p.groups_share_k) k /= p.groups;
  if (p.groups > 1 && !p.groups_share_k) m = tiled_rows(p.groups, m / p.groups);
  const double seconds = product_seconds(m, p.n, k, rate, rates.constants);
  return p.fp8 ? seconds : seconds * rates.constants.own_gemm;
}

double LayerTime::*part_of(PassKind kind) {
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

PhaseTimes device_times(const StepPieces& pieces, const DeviceRates& rates) {
  const Constants& c = rates.constants;
  PhaseTimes t;
  for (const StepProduct& product : pieces.products) {
    t.add(&LayerTime::products, product.times, seconds_of(product, rates));
  }
  // What softmax costs does not shrink with the width of heads.
  const double attention = rates.head * c.attn_eff * (1 + c.own_softmax / kUsualHead) /
                           (1 + c.own_softmax / rates.head_dim);
  t.forward.attention = pieces.attention.forward / attention;
  t.again.attention = pieces.attention.again / attention;
  t.backward.attention = pieces.attention.backward / (attention * c.attn_bwd);
  for (const StepPass& pass : pieces.passes) {
    t.add(part_of(pass.kind), pass.times,
          c.own_pass * pass.bytes * cache_miss(pass.bytes, rates.cache) / rates.memory);
  }
  t.add(&LayerTime::host, pieces.operators, c.gap_us * 1e-6);
  return t;
}

const DeviceTimes& device_times(const TrainerStep& step, const DeviceRates& rates) {
  if (step.priced == nullptr || step.priced->rates != rates) {
    step.priced = std::make_shared<const DeviceTimes>(
        DeviceTimes{rates, device_times(step.dense, rates), device_times(step.mixture, rates),
                    device_times(step.ends, rates)});
  }
  return *step.priced;
}

void add_share(const LayerTime& time, double share, LayerTime& sum) {
  LayerTime part = time;
  part *= share;
  sum += part;
}

// Of the mean layer.
PhaseTimes mixed(const PhaseTimes& dense, const PhaseTimes& mixture, double moe_share) {
  if (moe_share <= 0) return dense;
  PhaseTimes mean;
  for (LayerTime PhaseTimes::*phase :
       {&PhaseTimes::forward, &PhaseTimes::again, &PhaseTimes::backward}) {
    add_share(dense.*phase, 1 - moe_share, mean.*phase);
    add_share(mixture.*phase, moe_share, mean.*phase);
  }
  return mean;
}

ByPhase mixed(const ByPhase& dense, const ByPhase& mixture, double moe_share) {
  const auto mean = [&](double a, double b) { return (1 - moe_share) * a + moe_share * b; };
  return {mean(dense.forward, mixture.forward), mean(dense.again, mixture.again),
          mean(dense.backward, mixture.backward)};
}

void add_calls(const Work& work, const TrainerStep& step, double moe_share,
               const Constants& constants, PhaseTimes& layer, PhaseTimes& ends) {
  const Degrees& d = work.degrees;
  for (const StepCall& call : step.calls) {
    const bool context = call.axis == step::Axis::kContext;
    double seconds = exchange_seconds(
        call.kind, call.bytes, {context ? d.cp : d.tp, context ? d.tp : 1}, work.links, constants);
    if (context) {
      seconds *= constants.fsdp_slow;  // beside attention; what slows it is paid
    } else if (call.kind == step::CollectiveKind::kAllToAll) {
      // Ranks wait for each other where they exchange addends; then they are together.
      seconds += kSyncShare * constants.tp_sync_us * 1e-6 * (d.tp - 1);
    }
    double LayerTime::*part = context ? &LayerTime::context : &LayerTime::tensor;
    layer.add(part, mixed(call.dense, call.mixture, moe_share), seconds);
    ends.add(part, call.ends, seconds);
  }
}

void at_clock(LayerTime& time, double clock) {
  time.products /= clock;
  time.attention /= clock;
}

}  // namespace

TrainerTimes trainer_times(const Work& work, const TrainerStep& step, const RankShare& rank,
                           const Constants& constants) {
  const DeviceTimes& device = device_times(step, rates_of(work, rank, constants));
  PhaseTimes mean = mixed(device.dense, device.mixture, rank.moe_share);
  PhaseTimes ends = device.ends;
  add_calls(work, step, rank.moe_share, constants, mean, ends);

  // How busy tensor cores are: their share of forward and backward time at full clock.
  LayerTime both = mean.forward;
  both += mean.backward;
  TrainerTimes times;
  LayerTimes& layer = times.layer;
  layer.clock =
      sustained_clock((both.products + both.attention) / both.total(), work.card, constants);
  layer.forward = mean.forward;
  layer.backward = mean.backward;
  add_share(mean.again, 1 - 1 / work.shape.layers, layer.backward);
  at_clock(layer.forward, layer.clock);
  at_clock(layer.backward, layer.clock);
  times.ends = ends.forward;
  times.ends += ends.backward;
  at_clock(times.ends, layer.clock);
  return times;
}

}  // namespace assay::plan
