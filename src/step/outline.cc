#include "step/outline.h"

#include <algorithm>
#include <cmath>

#include "step/outliner.h"
#include "step/shapes.h"

namespace assay::step {
namespace {

std::int64_t whole(double size) {
  return std::llround(size);
}

}  // namespace

Sizes::Sizes(const spec::ModelSpec& m, const OutlineChoices& c) {
  const auto number = [](std::int64_t value) { return static_cast<double>(value); };
  const double tensor = number(c.cut.tensor);
  tokens = number(c.sequence * c.micro_batch) / number(c.cut.context);
  between = c.cut.sequence_parallel ? tokens / tensor : tokens;
  keys = number(c.sequence);
  const BlockShape shape = block_shape(m, c.cut.tensor);
  dim = number(shape.dim);
  q = number(shape.q);
  kv = number(shape.kv);
  ffn = number(shape.ffn);
  inner = number(shape.inner);
  vocab = number(padded_rows(m.vocab)) / tensor;
  layers = number(c.cut.layers > 0 ? c.cut.layers : m.layers);
  micros = number(c.accumulate);
  activation = number(bytes_of(c.numerics.activations));
  weight = number(bytes_of(c.numerics.weights));
  gradient = number(bytes_of(c.numerics.gradients));
}

double Outliner::added(double elements, double writes) const {
  return elements * sizes_.gradient * (1 + (writes - 1) / writes);
}

void Outliner::pass(Kind kind, Part part, double bytes) {
  outline_.ops.push_back(
      {.kind = kind, .phase = phase_, .part = part, .bytes = bytes, .count = count_});
}

void Outliner::attention(Kind kind, double passes, double bytes) {
  const Sizes& s = sizes_;
  pass(kind, Part::kAttention, bytes);
  outline_.ops.back().flops = passes * 2 * s.tokens * s.keys * s.q / 2;
}

void Outliner::collective(Axis axis, CollectiveKind kind, double elements) {
  const Cut& cut = choices_.cut;
  std::int64_t ranks = 2;  // of a pipeline: neighbours
  if (axis == Axis::kTensor) ranks = cut.tensor;
  if (axis == Axis::kContext) ranks = cut.context;
  if (axis == Axis::kExpert) ranks = cut.expert;
  outline_.collectives.push_back({.collective = {.kind = kind,
                                                 .type = choices_.numerics.activations,
                                                 .elements = whole(elements),
                                                 .ranks = ranks},
                                  .axis = axis,
                                  .phase = phase_,
                                  .count = count_});
}

void Outliner::product(Part part, Form form, double rows, double out, double in, double also,
                       double writes) {
  const Sizes& s = sizes_;
  const bool fp8 = choices_.numerics.fp8_blocks && part != Part::kHead;
  if (fp8) quantise(part, form, rows, out, in);
  OutlineOp op{.kind = Kind::kMatmul, .phase = phase_, .part = part, .fp8 = fp8, .count = count_};
  op.flops = 2 * rows * out * in;
  const double a = fp8 ? 1 : s.activation;
  const double w = fp8 ? 1 : s.weight;
  op.bytes = also + (fp8 ? 2 * 4 : 0);  // scales
  switch (form) {
    case Form::kForward:
      op.m = whole(rows), op.n = whole(out), op.k = whole(in);
      op.bytes += rows * in * a + out * in * w + rows * out * s.activation;
      break;
    case Form::kInput:
      op.m = whole(rows), op.n = whole(in), op.k = whole(out);
      op.bytes += rows * out * a + out * in * w + rows * in * s.activation;
      break;
    case Form::kWeight:
      op.m = whole(out), op.n = whole(in), op.k = whole(rows);
      op.bytes += rows * (out + in) * a + added(out * in, writes);
      break;
  }
  outline_.ops.push_back(op);
}

// As quantised.cc does it: scales are found once, forward; gradients are converted once, both ways,
// by whichever of their two products comes first.
void Outliner::quantise(Part part, Form form, double rows, double out, double in) {
  const Sizes& s = sizes_;
  const auto scale = [&](double elements, double each) {
    pass(Kind::kScale, part, elements * each + 4);
  };
  const auto convert = [&](double elements, double each, double results) {
    pass(Kind::kQuantise, part, elements * (each + results) + 4);
  };
  if (form == Form::kForward) {
    if (phase_ == Phase::kForward) {
      scale(rows * in, s.activation);
      scale(out * in, s.weight);
    }
    convert(rows * in, s.activation, 1);
    convert(out * in, s.weight, 1);
    return;
  }
  if (form == Form::kInput) {
    scale(rows * out, s.activation);
    convert(rows * out, s.activation, 2);
    return convert(out * in, s.weight, 1);
  }
  convert(rows * in, s.activation, 1);
}

void Outliner::ends() {
  const Sizes& s = sizes_;
  enter(Phase::kForward, s.micros);
  pass(Kind::kRead, Part::kEmbedding, 2 * 4 * s.tokens);
  if (choices_.cut.first) {
    const double learned = model_.positions == spec::Positions::kLearned ? 1 : 0;
    enter(Phase::kForward, s.micros);
    pass(Kind::kEmbed, Part::kEmbedding,
         s.tokens * (4 + s.dim * ((1 + learned) * s.weight + s.activation)));
    enter(Phase::kBackward, s.micros);
    const double rows = s.tokens * s.dim;
    pass(Kind::kEmbedGrad, Part::kEmbedding,
         s.tokens * 4 + rows * s.activation + rows * s.gradient);
    if (learned > 0) {
      pass(Kind::kPositionsGrad, Part::kPositions,
           rows * s.activation + added(static_cast<double>(model_.context) * s.dim, 1));
    }
  }
  if (choices_.cut.last) head();
  cut_ends();
  // Stages of a pipeline hand the stream on, and its gradient back.
  const double stream = s.between * s.dim;
  enter(Phase::kForward, s.micros);
  if (!choices_.cut.last) collective(Axis::kPipeline, CollectiveKind::kSendReceive, stream);
  enter(Phase::kBackward, s.micros);
  if (!choices_.cut.first) collective(Axis::kPipeline, CollectiveKind::kSendReceive, stream);
}

// The table and the head are spread over the vocabulary: what ranks have looked up is summed, and
// so is the gradient that comes out of the head. Sequence parallelism scatters the one after the
// table and gathers it before the head, and back again.
void Outliner::cut_ends() {
  const Cut& c = choices_.cut;
  enter(Phase::kForward, sizes_.micros);
  if (c.first)
    cut(c.sequence_parallel ? CollectiveKind::kReduceScatter : CollectiveKind::kAllReduce);
  if (c.last && c.sequence_parallel) cut(CollectiveKind::kAllGather);
  enter(Phase::kBackward, sizes_.micros);
  if (c.last)
    cut(c.sequence_parallel ? CollectiveKind::kReduceScatter : CollectiveKind::kAllReduce);
  if (c.first && c.sequence_parallel) cut(CollectiveKind::kAllGather);
}

void Outliner::head() {
  const Sizes& s = sizes_;
  const std::int64_t at_a_time = head_rows(whole(s.tokens), whole(s.vocab));
  const double parts = std::ceil(s.tokens / static_cast<double>(at_a_time));
  const double rows = s.tokens / parts;  // but for a smaller last part
  enter(Phase::kForward, s.micros);
  norm(Part::kFinalNorm);
  enter(Phase::kForward, parts * s.micros);
  product(Part::kHead, Form::kForward, rows, s.vocab, s.dim);
  constexpr double kSumBytes = 4.0 * kSummedScalars;
  pass(Kind::kLoss, Part::kLoss,
       rows * (2 * s.vocab * s.activation + 4) + kSumBytes * (1 + (parts - 1) / parts));
  enter(Phase::kBackward, parts * s.micros);
  product(Part::kHead, Form::kWeight, rows, s.vocab, s.dim, 0, parts);
  product(Part::kHead, Form::kInput, rows, s.vocab, s.dim);
  enter(Phase::kBackward, s.micros);
  norm_gradient(Part::kFinalNorm);
}

Outline outline(const spec::ModelSpec& model, const OutlineChoices& choices) {
  Outline result;
  result.ops.reserve(96);
  result.collectives.reserve(16);
  Outliner outliner(model, choices, result);
  outliner.blocks();
  outliner.ends();
  outliner.parameters();
  return result;
}

double Outline::flops() const {
  double sum = 0;
  for (const OutlineOp& op : ops) sum += op.flops * op.count;
  return sum;
}

}  // namespace assay::step
