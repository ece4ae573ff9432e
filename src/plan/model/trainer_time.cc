#include "plan/model/trainer_time.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "plan/model/exchange_time.h"

namespace assay::plan {

// Forward, recomputed and backward, at full clock.
struct PhaseTimes {
  LayerTime forward;
  LayerTime recomputed;
  LayerTime backward;

  void add(double LayerTime::*part, const ByPhase& times, double each) {
    forward.*part += times.forward * each;
    recomputed.*part += times.recomputed * each;
    backward.*part += times.backward * each;
  }
  [[nodiscard]] double total() const {
    return forward.total() + recomputed.total() + backward.total();
  }
};

// All that the time of a device depends on, beside the pieces themselves.
struct DeviceRates {
  double products = 0;
  double head = 0;
  double multiprocessors = 0;
  double memory = 0;
  double head_dim = 0;
  bool deterministic = false;
  base::Bytes cache;
  Constants constants;

  bool operator==(const DeviceRates&) const = default;
};

struct DeviceTimes {
  DeviceRates rates;
  PhaseTimes dense;
  PhaseTimes mixture;
  PhaseTimes ends;
  std::vector<double> beside_experts;  // by TrainerStep::exchange, of what is computed
};

namespace {

constexpr double kUsualHead = 128;  // for which attn_eff is known
// Of attention's backward pass that has the same bits every time: between 1.15 (moe-9b) and 1.4
// (Llama 3 8B, an earlier cuDNN) of its time otherwise, measured on an H200.
constexpr double kDeterministicBackward = 1.2;
// Between ranks whose host compiles nothing while it waits.
constexpr double kSyncShare = 0.5;

DeviceRates rates_of(const Work& work, const RankShare& rank, const Constants& constants) {
  return {.products = rank.products.flops,
          .head = rank.head.flops,
          .multiprocessors = rank.head.multiprocessors,
          .memory = rank.memory_rate,
          .head_dim = work.shape.head_dim,
          .deterministic = work.deterministic,
          .cache = work.card.cache,
          .constants = constants};
}

// Of one expert with some rows more or less than `rows`: of its last tile half is full on average.
double product_of_expert(double rows, double n, double k, const ProductRate& rate,
                         const Constants& constants) {
  const double tiles = rows / kTileRows + 0.5;
  const double whole = std::floor(tiles);
  const auto seconds = [&](double count) {
    return product_seconds(count * kTileRows, n, k, rate, constants);
  };
  const double fewer = whole > 0 ? (whole + 1 - tiles) * seconds(whole) : 0;
  return fewer + (tiles - whole) * seconds(whole + 1);
}

// Each expert's product is a separate call, with separate waves. For 8 experts with 4,096 rows
// that is 0.966 of the rate of one product of all rows, measured 0.965 (uneven rows; 2,048 x
// 7,168); for 64 with 1,536 (2,048 x 1,408) 0.86, measured 0.84 (bench/results/moe.md).
double seconds_of(const StepProduct& p, const DeviceRates& rates) {
  const ProductRate rate{p.fp8 ? rates.products : rates.head, rates.multiprocessors};
  const Constants& c = rates.constants;
  double seconds = 0;
  if (p.groups <= 1) {
    seconds = product_seconds(p.m, p.n, p.k, rate, c);
  } else if (p.groups_share_k) {
    seconds = p.groups * product_seconds(p.m / p.groups, p.n, p.k / p.groups, rate, c);
  } else {
    seconds = p.groups * product_of_expert(p.m / p.groups, p.n, p.k, rate, c);
  }
  return seconds * (p.fp8 ? c.own_fp8 : c.own_gemm);
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
  const double attention = rates.head * c.attn_eff * c.own_attn * (1 + c.own_softmax / kUsualHead) /
                           (1 + c.own_softmax / rates.head_dim);
  t.forward.attention = pieces.attention.forward / attention;
  t.recomputed.attention = pieces.attention.recomputed / attention;
  t.backward.attention = pieces.attention.backward / (attention * c.attn_bwd) *
                         (rates.deterministic ? kDeterministicBackward : 1);
  for (const StepPass& pass : pieces.passes) {
    const double scattered = pass.kind == PassKind::kRouting ? kScatteredRows : 1;
    t.add(part_of(pass.kind), pass.times,
          scattered * c.own_pass * pass.bytes * cache_miss(pass.bytes, rates.cache) / rates.memory);
  }
  t.add(&LayerTime::host, pieces.operators, c.gap_us * 1e-6);
  return t;
}

const DeviceTimes& device_times(const TrainerStep& step, const DeviceRates& rates) {
  if (step.priced == nullptr || step.priced->rates != rates) {
    DeviceTimes times{rates,
                      device_times(step.dense, rates),
                      device_times(step.mixture, rates),
                      device_times(step.ends, rates),
                      {}};
    for (const ExpertMoment& moment : step.exchange) {
      times.beside_experts.push_back(device_times(moment.compute, rates).total());
    }
    step.priced = std::make_shared<const DeviceTimes>(std::move(times));
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
       {&PhaseTimes::forward, &PhaseTimes::recomputed, &PhaseTimes::backward}) {
    add_share(dense.*phase, 1 - moe_share, mean.*phase);
    add_share(mixture.*phase, moe_share, mean.*phase);
  }
  return mean;
}

ByPhase mixed(const ByPhase& dense, const ByPhase& mixture, double moe_share) {
  const auto mean = [&](double a, double b) { return (1 - moe_share) * a + moe_share * b; };
  return {mean(dense.forward, mixture.forward), mean(dense.recomputed, mixture.recomputed),
          mean(dense.backward, mixture.backward)};
}

void add_calls(const Work& work, const TrainerStep& step, double moe_share,
               const Constants& constants, PhaseTimes& layer, PhaseTimes& ends) {
  const Degrees& d = work.degrees;
  for (const StepCall& call : step.calls) {
    const bool context = call.axis == step::Axis::kContext;
    double seconds = exchange_seconds(
        call.kind, call.bytes, {context ? d.cp : d.tp, context ? d.tp : 1}, work.links, constants);
    if (!context && call.kind == step::CollectiveKind::kAllToAll) {
      // Ranks wait for each other where they exchange addends; then they are together.
      seconds += kSyncShare * constants.tp_sync_us * 1e-6 * (d.tp - 1);
    }
    double LayerTime::*part = context ? &LayerTime::context : &LayerTime::tensor;
    layer.add(part, mixed(call.dense, call.mixture, moe_share), seconds);
    ends.add(part, call.ends, seconds);
  }
}

// Of a mixture's layer: rows on their way between ranks that have different experts. One message
// follows the other on the links, and what is computed from an exchange's issue to its wait hides
// it, as the program has it. The rank with the most rows gets more than the others, which wait for
// it.
struct ExpertsTime {
  ByPhase waited;  // with what hidden messages slow
  ByPhase sent;    // all of it
};

ExpertsTime experts_time(const Work& work, const TrainerStep& step, const DeviceTimes& device,
                         const Constants& constants) {
  const Degrees& d = work.degrees;
  constexpr std::size_t kMostMessages = 8;
  std::array<double, kMostMessages> seconds{};
  ASSAY_CHECK(step.messages.size() <= kMostMessages, "more kinds of messages than are priced");
  for (std::size_t i = 0; i < step.messages.size(); ++i) {
    const ExpertMessage& one = step.messages[i];
    seconds[i] = exchange_seconds(step::CollectiveKind::kAllToAll,
                                  one.bytes * (one.rows ? d.expert_load : 1), {d.ep, d.tp * d.cp},
                                  work.links, constants);
  }
  ExpertsTime time;
  double now = 0;
  double links_free = 0;
  constexpr std::size_t kMostInFlight = 16;
  std::array<double, kMostInFlight> arrives{};
  for (std::size_t i = 0; i < step.exchange.size(); ++i) {
    const ExpertMoment& moment = step.exchange[i];
    double& arrival = arrives[static_cast<std::size_t>(moment.ticket) % kMostInFlight];
    switch (moment.what) {
      case ExpertMoment::What::kCompute:
        now += device.beside_experts[i];
        break;
      case ExpertMoment::What::kIssue:
        arrival = links_free = std::max(now, links_free) + seconds[moment.message];
        time.sent.of(moment.phase) += seconds[moment.message];
        break;
      case ExpertMoment::What::kWait: {
        const double waited = std::max(0.0, arrival - now);
        time.waited.of(moment.phase) += waited;
        now += waited;
        break;
      }
    }
  }
  // What is hidden takes processors and memory from what hides it.
  for (double ByPhase::*phase : {&ByPhase::forward, &ByPhase::recomputed, &ByPhase::backward}) {
    const double hidden = std::max(0.0, time.sent.*phase - time.waited.*phase);
    time.waited.*phase += constants.fsdp_slow * hidden;
  }
  return time;
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
  for (LayerTime* phase : {&mean.forward, &mean.recomputed, &mean.backward})
    phase->context = unhidden_seconds(phase->context, phase->attention, constants.fsdp_slow);
  const ExpertsTime experts =
      step.exchange.empty() ? ExpertsTime{} : experts_time(work, step, device, constants);
  mean.add(&LayerTime::experts, experts.waited, rank.moe_share);

  // How busy tensor cores are: their share of forward and backward time at full clock.
  LayerTime both = mean.forward;
  both += mean.backward;
  TrainerTimes times;
  LayerTimes& layer = times.layer;
  layer.clock =
      sustained_clock((both.products + both.attention) / both.total(), work.card, constants);
  layer.forward = mean.forward;
  layer.backward = mean.backward;
  const double recomputed = 1 - 1 / work.shape.layers;
  add_share(mean.recomputed, recomputed, layer.backward);
  layer.links_forward = rank.moe_share * experts.sent.forward;
  layer.links_backward = rank.moe_share * (experts.sent.backward + experts.sent.recomputed);
  // The last layer's rows come again as well, if not to be recomputed.
  layer.backward.experts += (1 - recomputed) * rank.moe_share * experts.waited.recomputed;
  at_clock(layer.forward, layer.clock);
  at_clock(layer.backward, layer.clock);
  times.ends = ends.forward;
  times.ends += ends.backward;
  at_clock(times.ends, layer.clock);
  return times;
}

}  // namespace assay::plan
