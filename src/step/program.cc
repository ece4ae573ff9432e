#include "step/program.h"

#include "base/error.h"
#include "step/builder.h"
#include "step/parameters.h"

namespace assay::step {
namespace {

base::Result<void> check(const spec::ModelSpec& model) {
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
  return {};
}

void add_groups(Program& p, Builder& b, const std::int64_t (&elements)[kGroups]) {
  const Numerics& n = p.choices.numerics;
  const bool train = p.choices.purpose == Purpose::kTrain;
  constexpr const char* kNames[kGroups] = {"matrices", "decayed", "undecayed"};
  for (int i = 0; i < kGroups; ++i) {
    GroupBuffers& group = p.groups[i];
    group.elements = elements[i];
    const Place place = p.choices.layout.data;
    group.own = {group.elements / place.ranks * place.rank, group.elements / place.ranks};
    if (group.elements == 0) continue;
    const auto buffer = [&](const char* what, std::int64_t size, Dtype type, Storage storage) {
      return b.matrix(std::string(kNames[i]) + what, 1, size, type, storage).buffer;
    };
    const std::int64_t all = group.elements;
    const std::int64_t own = group.own.count;
    group.weights = buffer("", all, n.weights, Storage::kWeights);
    if (!train) continue;
    if (n.remainders) {
      group.remainders = buffer(" remainders", own, Dtype::kU16, Storage::kRemainders);
    }
    group.gradients = buffer(" gradients", all, n.gradients, Storage::kGradients);
    group.first_moment = buffer(" first moment", own, n.moments, Storage::kMoments);
    if (static_cast<Group>(i) == Group::kMuon) continue;
    group.second_moment = buffer(" second moment", own, n.moments, Storage::kMoments);
  }
}

void embed(Builder& b, const View& x) {
  Program& p = b.program();
  Op op{.kind = Kind::kEmbed, .part = Part::kEmbedding, .in = {p.tokens}, .out = {x}};
  op.in.push_back(b.weight(Part::kEmbedding));
  if (b.find(Part::kPositions) != nullptr) op.in.push_back(b.weight(Part::kPositions));
  b.emit(std::move(op));
}

void embed_gradient(Builder& b, const View& dx) {
  Program& p = b.program();
  const Parameter& table = *b.find(Part::kEmbedding);
  Op op{.kind = Kind::kEmbedGrad, .part = Part::kEmbedding, .in = {p.tokens, dx}};
  op.out = {p.gradient(table)};
  op.adds = p.model.tied ? 1 : 0;  // the head has begun the table's gradient
  b.emit(std::move(op));
  if (const Parameter* positions = b.find(Part::kPositions)) {
    b.emit({.kind = Kind::kPositionsGrad,
            .part = Part::kPositions,
            .in = {dx},
            .out = {p.gradient(*positions)}});
  }
}

// Forward and, for training, backward, of one micro-batch.
void build_micro_batch(Builder& b) {
  Program& p = b.program();
  const std::int64_t tokens = p.micro_tokens();
  const std::int64_t dim = p.model.dim;
  const bool train = p.choices.purpose == Purpose::kTrain;
  b.enter(Phase::kForward);
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

// The other micro-batches do the same with the same memory, and add to the gradients.
void repeat(Program& p) {
  const std::vector<Op> first = p.ops;
  for (std::int32_t micro = 1; micro < p.choices.accumulate; ++micro) {
    for (Op op : first) {
      op.micro = micro;
      for (std::size_t i = 0; i < op.out.size(); ++i) {
        const Buffer& buffer = p.buffers[static_cast<std::size_t>(op.out[i].buffer)];
        if (buffer.storage == Storage::kGradients) {
          op.adds = static_cast<std::uint8_t>(op.adds | (1U << i));
        }
      }
      p.ops.push_back(std::move(op));
    }
  }
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
  ASSAY_TRY_VOID(check(model));
  Program p;
  p.model = model;
  p.choices = choices;
  Builder b(p);
  std::int64_t elements[kGroups] = {};
  p.parameters = list_parameters(model, choices.optimizer, elements);
  spread_over_ranks(choices.layout.data.ranks, p.parameters, elements);
  add_groups(p, b, elements);
  const std::int64_t tokens = p.micro_tokens();
  p.tokens = b.matrix("tokens", tokens, 1, Dtype::kI32, Storage::kInputs);
  if (choices.purpose != Purpose::kLogits) {
    p.targets = b.matrix("targets", tokens, 1, Dtype::kI32, Storage::kInputs);
  }
  p.scalars = b.matrix("scalars", 1, static_cast<std::int64_t>(Scalar::kScalars), Dtype::kF32,
                       Storage::kScalars);
  build_micro_batch(b);
  if (choices.purpose == Purpose::kLogits) return p;
  repeat(p);
  sum_losses(b);
  if (choices.purpose == Purpose::kTrain) build_optimizer(b);
  return p;
}

double Program::flops() const {
  double sum = 0;
  for (const Op& op : ops) sum += op.flops;
  return sum;
}

}  // namespace assay::step
