#include "plan/model/step_time.h"

#include <algorithm>
#include <cmath>

#include "plan/model/exchange_time.h"
#include "plan/model/folded_exchange.h"
#include "plan/model/gradients_time.h"
#include "plan/model/layer_time.h"
#include "plan/model/pipeline.h"
#include "plan/model/rank_share.h"
#include "plan/model/shards_time.h"
#include "plan/model/trainer_time.h"

namespace assay::plan {
namespace {

using base::Seconds;

constexpr double kStepOverhead = 2e-3;  // data, logging, the optimizer's launches
// What nanochat's optimizer does on the host for each exchange: it waits, stacks, updates,
// launches. Published: 41.2 ms for a d12 with 26 calls, whose bytes and flops take 8, and 57.8 for
// a d26 with 40.
constexpr double kMuonHostPerCall = 1.5e-3;
constexpr double kUnalignedRate = 0.33;
constexpr double kHeadOperators = 30;
constexpr double kSendExposed = 0.3;  // where software hides it

// Bytes per logit that the loss moves.
double loss_bytes(const Software& software) {
  if (software.compiled) return 12;
  // Megatron's: cast 6, maximum 4, subtraction 8, exponential 8, sum 4, division 8, backward 8,
  // cast 6.
  return software.vocab_parallel_loss ? 52 : 28;
}

// Output product, loss and embedding of one micro-batch.
struct HeadTime {
  double compute = 0;
  double tensor = 0;
  double host = 0;

  [[nodiscard]] double total() const { return compute + tensor + host; }
};

HeadTime head_time(const Work& work, const RankShare& rank, const LayerTimes& layer,
                   const Constants& constants) {
  const Shape& shape = work.shape;
  const double tp = work.degrees.tp;
  ProductRate rate = rank.head;
  if (shape.ragged_vocab) rate.flops *= kUnalignedRate;
  const TwoWays product =
      linear_seconds(rank.tokens, shape.vocab / tp, shape.dim, rate, rank.trained, constants);
  const double logits = rank.tokens * shape.vocab;
  const double held = work.software.gathers_logits ? logits : logits / tp;
  HeadTime time;
  time.compute =
      shape.predictions * (product.forward + product.backward) / layer.clock +
      (shape.predictions * held * loss_bytes(work.software) + 12 * rank.tokens * shape.dim) /
          rank.memory_rate;
  if (tp > 1) {
    time.tensor = 2 * layer.all_reduce;
    if (work.software.gathers_logits) {
      time.tensor += exchange_seconds(step::CollectiveKind::kAllGather, 4 * logits, {.ranks = tp},
                                      work.links, constants);
    }
  }
  time.host = kHeadOperators * rank.host_per_operator;
  return time;
}

// What a rank computes: of our trainer from its step, of other software in closed form.
struct Computed {
  LayerTimes layer;
  HeadTime head;
};

Computed computed(const Work& work, const TrainerStep* trained, const RankShare& rank,
                  const Constants& constants) {
  if (trained == nullptr) {
    const LayerTimes layer = layer_times(work, rank, constants);
    return {layer, head_time(work, rank, layer, constants)};
  }
  const auto [layer, ends] = trainer_times(work, *trained, rank, constants);
  return {layer,
          {.compute = ends.products + ends.passes, .tensor = ends.tensor, .host = ends.host}};
}

// Activations and their gradients between two stages, of one micro-batch.
double send_seconds(const Work& work, const TrainerStep* trained, const RankShare& rank,
                    const Constants& constants) {
  const Degrees& degrees = work.degrees;
  if (degrees.pp <= 1) return 0;
  const double bytes =
      trained != nullptr ? trained->stream : 2 * rank.tokens * work.shape.dim / degrees.tp;
  const RankAxis stages{.ranks = degrees.pp, .apart = degrees.ranks / degrees.pp};
  const double one =
      exchange_seconds(step::CollectiveKind::kSendReceive, bytes, stages, work.links, constants);
  return 2 * one * degrees.chunks * (work.software.overlaps_sends ? kSendExposed : 1);
}

// The pipeline stage that the others wait for.
struct SlowestStage {
  double layers = 0;
  double head_share = 1;
};

SlowestStage slowest_stage(const Work& work, double layer_seconds, double head_seconds) {
  const StageLayers stages = stage_layers(work);
  const bool head = stages.last * layer_seconds + head_seconds >= stages.most * layer_seconds;
  return head ? SlowestStage{stages.last, 1} : SlowestStage{stages.most, 0};
}

// With interleaved stages, the gradients of one chunk after another become complete during the
// backward passes of a whole group of micro-batches, and weights are needed during its forward
// passes. A group that is not full takes as long as a full one. It passes each layer once: where
// stages are uneven, the slowest has more than its share of them.
double micros_beside(const Work& work, const SlowestStage& slowest) {
  const bool interleaved = work.degrees.pp > 1 && work.degrees.chunks > 1;
  return interleaved ? std::min(work.degrees.pp, work.shape.layers / slowest.layers) : 1;
}

// Time of one micro-batch in which gradients can be exchanged: the backward pass of the pipeline
// stage with most gradients, and its wait for the slowest stage.
double hiding_seconds(const Work& work, const SlowestStage& slowest, double layer_seconds,
                      double layer_backward, double head_seconds) {
  const double alone = layer_backward * slowest.layers;
  if (work.degrees.pp <= 1 || work.software.framework != Framework::kAssay)
    return alone * micros_beside(work, slowest);
  const StageLayers stages = stage_layers(work);
  if (stages.first == stages.most && stages.last == stages.most) return alone;
  const TrainedPart part = trained_part(work);
  const bool has_head = part.tables > 0 && part.layers == stages.last;
  const double busy = layer_seconds * part.layers + (has_head ? head_seconds : 0);
  const double step = layer_seconds * slowest.layers + head_seconds * slowest.head_share;
  return layer_backward * part.layers + step - busy;
}

// By how much a layer's backward pass is shorter without `later` of it: not at all where it waits
// for the exchange of shards.
double shortened_by(double later, const Work& work, const RankShare& rank, double forward,
                    double backward, double unhidden, const Constants& constants) {
  const ShardsTime rest = shards_time(work, rank, forward, backward - later, constants);
  return std::max(0.0, later + unhidden - rest.backward);
}

constexpr StepPart kStepParts[] = {
    {"products", "matrix products", &StepTime::products},
    {"attention", "attention", &StepTime::attention},
    {"passes", "norms, activations, casts", &StepTime::passes},
    {"head", "head and loss", &StepTime::head},
    {"routing", "routing of experts", &StepTime::routing},
    {"tensor", "tensor parallelism", &StepTime::tensor},
    {"context", "context parallelism", &StepTime::context},
    {"experts", "all-to-all of experts", &StepTime::experts},
    {"shards", "shards, not hidden", &StepTime::shards},
    {"gradients", "gradients, not hidden", &StepTime::gradients},
    {"pipeline", "pipeline: bubbles, sends", &StepTime::pipeline},
    {"host", "waiting for the host", &StepTime::host},
    {"optimizer", "optimizer", &StepTime::optimizer},
    {"other", "fixed costs, jitter", &StepTime::other},
};

}  // namespace

std::span<const StepPart> step_parts() {
  return kStepParts;
}

StepTime step_time(const Work& work, const Constants& constants) {
  const Degrees& degrees = work.degrees;
  const double micros = work.batch.micros;
  const double layers = work.shape.layers;
  const RankShare rank = rank_share(work, constants);
  const TrainerStep* trained = trainer_step(work);
  const auto [layer, head] = computed(work, trained, rank, constants);
  const double forward = layer.forward.total();
  const double backward = layer.backward.total();
  // What parameters are exchanged behind: the rest of the time the links have rows of experts.
  const double free_forward = std::max(0.0, forward - layer.links_forward);
  const double free_backward = std::max(0.0, backward - layer.links_backward);
  const ShardsTime shards = shards_time(work, rank, free_forward, free_backward, constants);
  const double send = send_seconds(work, trained, rank, constants);

  const double each = forward + shards.forward + backward + shards.backward;
  const SlowestStage stage = slowest_stage(work, each, head.total());
  const double head_share = stage.head_share;
  double whole = each * layers + head.total() + shards.ends;
  double slowest = whole;
  if (degrees.pp > 1) {
    slowest = each * stage.layers + head.total() * head_share + send;
    whole += (degrees.pp - 1) * send;
  }
  // The products of weights' gradients are those of the forward pass, or half of the backward
  // pass', and half of its launches: of the stages that the slowest one would wait for.
  const double others = (layers - stage.layers) / std::max(1.0, degrees.pp - 1);
  const double products = std::min(layer.forward.products, layer.backward.products / 2);
  const double later = std::min(free_backward, products + layer.backward.host / 2);
  const double weights = degrees.zero_bubble
                             ? others * shortened_by(later, work, rank, free_forward, free_backward,
                                                     shards.backward, constants)
                             : 0;
  const double passes = pipeline_seconds({.stages = degrees.pp,
                                          .chunks = degrees.chunks,
                                          .micros = micros,
                                          .slowest = slowest,
                                          .whole = whole,
                                          .weights = weights,
                                          .two_rounds = degrees.two_rounds});
  const double threads = work.links.scarce_threads;
  const double starved = threads > 0 ? constants.cross_socket_host / threads : 0;

  StepTime t;
  t.clock = layer.clock;
  const TrainedParameters parameters = trained_parameters(work, rank);
  const double hiding =
      hiding_seconds(work, stage, each, free_backward + shards.backward, head.total());
  const HidingPasses beside{
      (free_forward + shards.forward) * stage.layers * micros_beside(work, stage), hiding};
  const double gradients = gradients_seconds(work, rank, parameters, beside, constants);
  double optimizer = optimizer_seconds(work, rank, parameters, constants);
  if (work.muon && work.muon_exchange.stacked && work.software.framework == Framework::kNanochat) {
    const double device = gradients + optimizer;
    optimizer += smooth_max(device, work.muon_exchange.calls * kMuonHostPerCall) - device;
  }
  const double nodes = std::max(1.0, degrees.ranks / work.links.per_node());
  const double undisturbed = passes * (1 + starved) + gradients + optimizer + kStepOverhead;
  const double jitter = constants.jitter * std::log2(nodes);
  t.gradients = Seconds(gradients);
  t.optimizer = Seconds(optimizer);
  t.total = Seconds(undisturbed * (1 + jitter));

  const double runs = micros * stage.layers;
  LayerTime both = layer.forward;
  both += layer.backward;
  t.products = Seconds(runs * both.products);
  t.attention = Seconds(runs * both.attention);
  t.passes = Seconds(runs * both.passes);
  t.routing = Seconds(runs * both.routing);
  t.context = Seconds(runs * both.context);
  t.experts = Seconds(runs * both.experts);
  t.head = Seconds(micros * head_share * head.compute);
  t.tensor = Seconds(runs * both.tensor + micros * head_share * head.tensor);
  t.host = Seconds(runs * both.host + micros * head_share * head.host + starved * passes);
  const double ends = degrees.pp > 1 ? shards.ends / degrees.chunks : micros * shards.ends;
  t.shards = Seconds(runs * (shards.forward + shards.backward) + ends);
  if (degrees.pp > 1) t.pipeline = Seconds(passes - micros * (slowest - send) - ends);
  t.other = Seconds(kStepOverhead + undisturbed * jitter);
  return t;
}

Seconds step_seconds(const Work& work, const Constants& constants) {
  return step_time(work, constants).total;
}

}  // namespace assay::plan
