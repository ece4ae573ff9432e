// The blocks of a step, as block.cc builds them, once for all layers.
#include <algorithm>

#include "step/outliner.h"
#include "step/recompute.h"

namespace assay::step {

double Outliner::norm_weights() const {
  return model_.norm == spec::Norm::kLayerNorm ? 2 : model_.norm == spec::Norm::kRmsNorm ? 1 : 0;
}

void Outliner::norm(Part part) {
  const Sizes& s = sizes_;
  pass(Kind::kNorm, part, 2 * s.between * s.dim * s.activation + norm_weights() * s.dim * s.weight);
}

void Outliner::norm_gradient(Part part) {
  const Sizes& s = sizes_;
  const double adds = part == Part::kFinalNorm ? 1 : 2;
  const double weight = norm_weights() > 0 ? s.dim * s.weight : 0;
  pass(Kind::kNormGrad, part,
       (2 + adds) * s.between * s.dim * s.activation + weight + norm_weights() * added(s.dim, 1));
}

void Outliner::bias_gradient(Part part, double rows, double width) {
  if (!model_.bias) return;
  pass(Kind::kBiasGrad, part, rows * width * sizes_.activation + added(width, 1));
}

// What tensor ranks have computed of a sum is summed: everywhere, or, where sequence parallelism
// cuts what comes next, scattered, and gathered again before the next product.
void Outliner::cut_sums() {
  if (!choices_.cut.sequence_parallel) return cut(CollectiveKind::kAllReduce);
  cut(CollectiveKind::kReduceScatter);
  cut(CollectiveKind::kAllGather);
}

void Outliner::cut(CollectiveKind kind) {
  if (choices_.cut.tensor > 1) collective(Axis::kTensor, kind, sizes_.tokens * sizes_.dim);
}

void Outliner::make_qkv() {
  const Sizes& s = sizes_;
  const double width = s.q + 2 * s.kv;
  norm(Part::kAttentionNorm);
  product(Part::kQkv, Form::kForward, s.tokens, width, s.dim, bias(width));
  if (model_.qk_norm != spec::QkNorm::kNone) {
    const bool learned = model_.qk_norm == spec::QkNorm::kLearned;
    const double weight = learned ? static_cast<double>(model_.head_dim) * s.weight : 0;
    pass(Kind::kHeadNorm, Part::kQueryNorm, 2 * s.tokens * s.q * s.activation + weight);
    pass(Kind::kHeadNorm, Part::kKeyNorm, 2 * s.tokens * s.kv * s.activation + weight);
  }
  if (model_.positions == spec::Positions::kRope) {
    pass(Kind::kRotate, Part::kRope, 2 * s.tokens * (s.q + s.kv) * s.activation);
  }
}

void Outliner::attend() {
  const Sizes& s = sizes_;
  const double sums = s.tokens * s.q / static_cast<double>(model_.head_dim) * 4;
  attention(Kind::kAttention, 2, s.tokens * (2 * s.q + 2 * s.kv) * s.activation + sums);
  if (choices_.cut.context > 1) {
    // Keys and values go round among the ranks of a sequence.
    collective(Axis::kContext, CollectiveKind::kAllGather,
               2 * s.tokens * s.kv * static_cast<double>(choices_.cut.context));
  }
}

void Outliner::attention_out() {
  const Sizes& s = sizes_;
  const double residual = s.between * s.dim * s.activation;
  product(Part::kAttentionOut, Form::kForward, s.tokens, s.dim, s.q, residual + bias(s.dim));
  cut_sums();
}

// A dense layer's tokens all go through one MLP; of a mixture each goes to some of the experts,
// equally many to each.
Outliner::Mlp Outliner::mlp() const {
  if (!mixture_) return {.rows = sizes_.tokens, .times = 1};
  const auto experts = static_cast<double>(model_.experts);
  const auto here = experts / static_cast<double>(choices_.cut.expert);
  return {.rows = routed_tokens() / here, .times = here};
}

// Copies of tokens that this rank's experts compute, on average: as many as come, or what a
// capacity makes of an even share, filled up with zeros where fewer come.
double Outliner::routed_tokens() const {
  const double even = sizes_.tokens * static_cast<double>(model_.experts_per_token);
  return model_.capacity > 0 ? model_.capacity * even : even;
}

// Takes tokens to their experts, or back.
void Outliner::route(Kind kind) {
  if (!mixture_) return;
  const double elements = routed_tokens() * sizes_.dim;
  pass(kind, Part::kRouter, 2 * elements * sizes_.activation);
  if (choices_.cut.expert > 1) collective(Axis::kExpert, CollectiveKind::kAllToAll, elements);
}

void Outliner::gate_up() {
  const Sizes& s = sizes_;
  if (mixture_) {
    product(Part::kRouter, Form::kForward, s.tokens, static_cast<double>(model_.experts), s.dim);
  }
  route(Kind::kEmbed);
  each(mlp().times,
       [&] { product(Part::kGateUp, Form::kForward, mlp().rows, s.inner, s.dim, bias(s.inner)); });
}

void Outliner::down() {
  const Sizes& s = sizes_;
  const double residual = s.between * s.dim * s.activation / mlp().times;
  each(mlp().times, [&] {
    product(Part::kDown, Form::kForward, mlp().rows, s.dim, s.ffn, residual + bias(s.dim));
  });
  route(Kind::kEmbedGrad);
  cut_sums();
}

void Outliner::mlp_forward() {
  const Sizes& s = sizes_;
  norm(Part::kMlpNorm);
  gate_up();
  pass(Kind::kActivate, Part::kActivation, mlp().tokens() * (s.inner + s.ffn) * s.activation);
  down();
}

void Outliner::backward_mlp(bool recomputes_norm, bool makes_activation) {
  const Sizes& s = sizes_;
  const auto [rows, times] = mlp();
  route(Kind::kEmbed);
  each(times, [&] {
    bias_gradient(Part::kDown, rows, s.dim);
    product(Part::kDown, Form::kInput, rows, s.dim, s.ffn);
  });
  pass(Kind::kActivateGrad, Part::kActivation,
       mlp().tokens() * (2 * s.inner + (makes_activation ? 2 : 1) * s.ffn) * s.activation);
  each(times, [&] { product(Part::kDown, Form::kWeight, rows, s.dim, s.ffn); });
  if (recomputes_norm) {
    phase_ = Phase::kRecompute;
    norm(Part::kMlpNorm);
    phase_ = Phase::kBackward;
  }
  each(times, [&] {
    bias_gradient(Part::kGateUp, rows, s.inner);
    product(Part::kGateUp, Form::kWeight, rows, s.inner, s.dim);
    product(Part::kGateUp, Form::kInput, rows, s.inner, s.dim);
  });
  route(Kind::kEmbedGrad);
  if (mixture_) {
    const auto experts = static_cast<double>(model_.experts);
    product(Part::kRouter, Form::kWeight, s.tokens, experts, s.dim);
    product(Part::kRouter, Form::kInput, s.tokens, experts, s.dim);
  }
  cut_sums();
  norm_gradient(Part::kMlpNorm);
}

void Outliner::backward_attention(bool recomputes_norm) {
  const Sizes& s = sizes_;
  const double width = s.q + 2 * s.kv;
  bias_gradient(Part::kAttentionOut, s.tokens, s.dim);
  product(Part::kAttentionOut, Form::kWeight, s.tokens, s.dim, s.q);
  product(Part::kAttentionOut, Form::kInput, s.tokens, s.dim, s.q);
  const double sums = s.tokens * s.q / static_cast<double>(model_.head_dim) * 4;
  attention(Kind::kAttentionGrad, 5, s.tokens * (4 * s.q + 4 * s.kv) * s.activation + sums);
  if (choices_.cut.context > 1) {
    collective(Axis::kContext, CollectiveKind::kAllGather,
               2 * s.tokens * s.kv * static_cast<double>(choices_.cut.context));
    collective(Axis::kContext, CollectiveKind::kReduceScatter,
               2 * s.tokens * s.kv * static_cast<double>(choices_.cut.context));
  }
  if (model_.positions == spec::Positions::kRope) {
    pass(Kind::kRotateGrad, Part::kRope, 2 * s.tokens * (s.q + s.kv) * s.activation);
  }
  if (model_.qk_norm != spec::QkNorm::kNone) {
    const bool learned = model_.qk_norm == spec::QkNorm::kLearned;
    const auto head = static_cast<double>(model_.head_dim);
    const double weight = learned ? head * s.weight + added(head, 1) : 0;
    pass(Kind::kHeadNormGrad, Part::kQueryNorm, 3 * s.tokens * s.q * s.activation + weight);
    pass(Kind::kHeadNormGrad, Part::kKeyNorm, 3 * s.tokens * s.kv * s.activation + weight);
  }
  if (recomputes_norm) {
    phase_ = Phase::kRecompute;
    norm(Part::kAttentionNorm);
    phase_ = Phase::kBackward;
  }
  bias_gradient(Part::kQkv, s.tokens, width);
  product(Part::kQkv, Form::kWeight, s.tokens, width, s.dim);
  product(Part::kQkv, Form::kInput, s.tokens, width, s.dim);
  cut_sums();
  norm_gradient(Part::kAttentionNorm);
}

// nanochat's: every block begins with a weighted sum of the stream and the embedding, and every
// second one adds a table's rows to its values.
void Outliner::extras(bool forward) {
  const Sizes& s = sizes_;
  if (model_.residual_lambdas) {
    pass(forward ? Kind::kActivate : Kind::kActivateGrad, Part::kResidual,
         (forward ? 3 : 5) * s.tokens * s.dim * s.activation);
  }
  if (model_.value_embeddings) {
    each(0.5, [&] {
      pass(forward ? Kind::kEmbed : Kind::kEmbedGrad, Part::kValueEmbedding,
           3 * s.tokens * s.kv * s.activation);
    });
  }
}

void Outliner::blocks() {
  const double mixtures = model_.is_moe() ? static_cast<double>(model_.moe_layers()) /
                                                static_cast<double>(model_.layers)
                                          : 0;
  mixture_ = true;
  if (mixtures > 0) blocks_alike(mixtures * sizes_.layers, true);
  mixture_ = false;
  if (mixtures < 1) blocks_alike((1 - mixtures) * sizes_.layers, mixtures == 0);
}

void Outliner::blocks_alike(double layers, bool have_last) {
  const Sizes& s = sizes_;
  const KeptParts parts = kept_by(choices_.recompute);
  enter(Phase::kForward, layers * s.micros);
  extras(true);
  make_qkv();
  attend();
  attention_out();
  mlp_forward();

  const double kept = layers_kept(choices_.recompute, layers, choices_.cut.last && have_last);
  const double again = layers - kept;
  if (!parts.attention && again > 0) {
    enter(Phase::kRecompute, again * s.micros);
    make_qkv();
    attend();
    attention_out();
    norm(Part::kMlpNorm);
    gate_up();
  } else if (!parts.gate_up && again > 0) {
    enter(Phase::kRecompute, again * s.micros);
    norm(Part::kMlpNorm);
    gate_up();
  }
  if (kept > 0) {
    enter(Phase::kBackward, kept * s.micros);
    backward_mlp(false, false);
    backward_attention(false);
    extras(false);
  }
  if (again > 0) {
    enter(Phase::kBackward, again * s.micros);
    backward_mlp(/*recomputes_norm=*/!parts.norms && parts.gate_up, /*makes_activation=*/true);
    backward_attention(/*recomputes_norm=*/!parts.norms && parts.attention);
    extras(false);
  }
}

}  // namespace assay::step
