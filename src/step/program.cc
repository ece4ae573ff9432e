#include "step/program.h"

#include "base/error.h"
#include "step/builder.h"

namespace assay::step {
namespace {

base::Result<void> check(const spec::ModelSpec& model, const Choices& choices) {
  const auto refuse = [](const char* key, const char* what) {
    return base::fail(base::usage_error(key, what, "leave it out, or choose another model"));
  };
  if (model.is_moe()) return refuse("model.experts", "mixtures cannot be trained yet");
  if (model.value_embeddings) {
    return refuse("model.value_embeddings", "value embeddings cannot be trained yet");
  }
  if (model.residual_lambdas) {
    return refuse("model.residual_lambdas", "residual lambdas cannot be trained yet");
  }
  if (choices.optimizer == spec::Optimizer::kMuon && choices.layout.gathers_weights()) {
    return base::fail(base::usage_error(
        "layout.zero", "Muon updates whole matrices, and zero 3 keeps parts of them",
        "set layout.zero=2"));
  }
  return {};
}

void add_buffers(Program& p) {
  const Numerics& n = p.choices.numerics;
  const bool train = p.choices.purpose == Purpose::kTrain;
  for (Unit& unit : p.units) {
    const auto buffer = [&](const char* what, std::int64_t elements, Dtype type, Storage storage) {
      p.buffers.push_back({unit.name + what, storage, type, elements});
      return static_cast<BufferId>(p.buffers.size() - 1);
    };
    const std::int64_t own = unit.own.count;
    unit.weights = buffer("", p.choices.layout.gathers_weights() ? own : unit.elements, n.weights,
                          Storage::kWeights);
    if (!train) continue;
    if (n.remainders) {
      unit.remainders = buffer(" remainders", own, Dtype::kU16, Storage::kRemainders);
    }
    unit.gradients = buffer(" gradients", own, n.gradients, Storage::kGradients);
    if (p.model.tied && unit.name == "embedding") {
      unit.head_gradients = buffer(" head gradients", own, n.gradients, Storage::kGradients);
    }
    unit.first_moment = buffer(" first moment", own, n.moments, Storage::kMoments);
    if (unit.whole_matrices) continue;
    unit.second_moment = buffer(" second moment", own, n.moments, Storage::kMoments);
  }
}

void embed(Builder& b, const View& x) {
  Program& p = b.program();
  const Parameter* positions = b.find(Part::kPositions);
  b.use(b.find(Part::kEmbedding)->unit);
  if (positions != nullptr) b.use(positions->unit);
  Op op{.kind = Kind::kEmbed, .part = Part::kEmbedding, .in = {p.tokens}, .out = {x}};
  op.in.push_back(b.weight(Part::kEmbedding));
  if (positions != nullptr) op.in.push_back(b.weight(*positions));
  b.emit(std::move(op));
}

void embed_gradient(Builder& b, const View& dx) {
  Program& p = b.program();
  const Parameter& table = *b.find(Part::kEmbedding);
  Op op{.kind = Kind::kEmbedGrad, .part = Part::kEmbedding, .in = {p.tokens, dx}};
  op.out = {b.gradient(table)};
  b.emit(std::move(op));
  b.finish_gradients(table.unit);
  if (const Parameter* positions = b.find(Part::kPositions)) {
    b.emit({.kind = Kind::kPositionsGrad,
            .part = Part::kPositions,
            .in = {dx},
            .out = {b.gradient(*positions)}});
    b.finish_gradients(positions->unit);
  }
}

// The order in which a micro-batch uses weights that must be gathered first.
void plan_uses(Builder& b) {
  const Program& p = b.program();
  b.enter(Phase::kForward);
  b.plan_uses({b.find(Part::kEmbedding)->unit});
  if (const Parameter* positions = b.find(Part::kPositions)) b.plan_uses({positions->unit});
  for (std::int32_t layer = 0; layer < p.model.layers; ++layer) {
    b.enter(Phase::kForward, layer);
    b.plan_uses(units_used(b, Phase::kForward));
  }
  b.enter(Phase::kForward);
  b.plan_uses(units_of_head(b));
  for (auto layer = static_cast<std::int32_t>(p.model.layers - 1); layer >= 0; --layer) {
    b.enter(Phase::kBackward, layer);
    b.plan_uses(units_used(b, Phase::kBackward));
  }
}

// Forward and, for training, backward, of one micro-batch.
void build_micro_batch(Builder& b) {
  Program& p = b.program();
  const std::int64_t tokens = p.micro_tokens();
  const std::int64_t dim = p.model.dim;
  const bool train = p.choices.purpose == Purpose::kTrain;
  b.enter(Phase::kForward);
  Op read{.kind = Kind::kRead, .part = Part::kEmbedding, .out = {p.tokens}};
  if (p.targets.buffer >= 0) read.out.push_back(p.targets);
  b.emit(std::move(read));
  View x = b.matrix("embedded", tokens, dim);
  embed(b, x);
  std::vector<Kept> kept;
  for (std::int32_t layer = 0; layer < p.model.layers; ++layer) {
    b.enter(Phase::kForward, layer);
    const View out = b.matrix(b.named("out"), tokens, dim);
    kept.push_back(forward_block(b, x, out));
    x = out;
  }
  if (!train) return build_head(b, x, nullptr);
  const View dx = b.matrix("gradient", tokens, dim);
  build_head(b, x, &dx);
  for (auto layer = static_cast<std::int32_t>(p.model.layers - 1); layer >= 0; --layer) {
    b.enter(Phase::kBackward, layer);
    backward_block(b, kept[static_cast<std::size_t>(layer)], dx);
  }
  b.enter(Phase::kBackward);
  embed_gradient(b, dx);
}

}  // namespace

Numerics numerics_of(spec::Precision precision) {
  if (precision == spec::Precision::kFp32) return {};
  const Dtype half = precision == spec::Precision::kFp16 ? Dtype::kFp16 : Dtype::kBf16;
  return {.weights = half,
          .remainders = true,
          .gradients = half,
          .moments = half,
          .activations = half,
          .fp8_blocks = precision == spec::Precision::kFp8};
}

Choices choices_of(const spec::JobSpec& job) {
  return {.numerics = numerics_of(job.train.precision),
          .recompute = job.train.recompute,
          .optimizer = job.train.optimizer,
          .sequence = job.batch.sequence,
          .micro_batch = job.batch.micro_batch,
          .accumulate = job.batch.accumulate};
}

base::Result<Program> build(const spec::ModelSpec& model, const Choices& choices) {
  ASSAY_TRY_VOID(check(model, choices));
  Program p;
  p.model = model;
  p.choices = choices;
  p.parameters = list_parameters(model, choices.optimizer);
  p.units = make_units(model, choices.layout, p.parameters);
  add_buffers(p);
  Builder b(p);
  const std::int64_t tokens = p.micro_tokens();
  p.tokens = b.matrix("tokens", tokens, 1, Dtype::kI32, Storage::kInputs);
  if (choices.purpose != Purpose::kLogits) {
    p.targets = b.matrix("targets", tokens, 1, Dtype::kI32, Storage::kInputs);
    p.sums = b.matrix("sums", choices.accumulate, kSummedScalars, Dtype::kF32, Storage::kScalars);
  }
  p.scalars = b.matrix("scalars", 1, static_cast<std::int64_t>(Scalar::kScalars), Dtype::kF32,
                       Storage::kScalars);
  const std::int64_t micros = choices.purpose == Purpose::kLogits ? 1 : choices.accumulate;
  for (std::int32_t micro = 0; micro < micros; ++micro) {
    b.begin_micro(micro);
    plan_uses(b);
  }
  for (std::int32_t micro = 0; micro < micros; ++micro) {
    b.begin_micro(micro);
    build_micro_batch(b);
  }
  if (choices.purpose == Purpose::kLogits) return p;
  b.begin_micro(0);
  add_losses(b);
  if (choices.purpose == Purpose::kTrain) build_optimizer(b);
  return p;
}

double Program::flops() const {
  double sum = 0;
  for (const Op& op : ops) sum += op.flops;
  return sum;
}

}  // namespace assay::step
