// One decoder block, forward and backward. The recompute policy decides what the forward pass
// keeps; the backward pass recomputes the rest right before it is needed.
#include "step/block.h"

#include "step/context.h"
#include "step/mixture.h"
#include "step/recompute.h"

namespace assay::step {
namespace {

bool has_heads(const spec::ModelSpec& m) {
  return m.qk_norm != spec::QkNorm::kNone;
}

const View* bias_view(Builder& b, ModelPart part, View& place) {
  const Parameter* bias = b.find(part, true);
  if (bias == nullptr) return nullptr;
  place = b.weight(*bias);
  return &place;
}

void head_norm(Builder& b, ModelPart part, const View& x, const View& y) {
  Op op{.kind = OpKind::kHeadNorm, .part = part, .in = {x}, .out = {y}};
  if (const Parameter* p = b.find(part, true)) op.in.push_back(b.weight(*p));
  b.emit(std::move(op));
}

void head_norm_gradient(Builder& b, ModelPart part, const View& dy, const View& x) {
  Op op{.kind = OpKind::kHeadNormGrad, .part = part, .in = {dy, x}, .out = {dy}};
  if (const Parameter* p = b.find(part, true)) {
    op.in.push_back(b.weight(*p));
    op.out.push_back(b.vector_gradient(*p));
  }
  b.emit(std::move(op));
}

void attention_norm(Builder& b, SavedActivations& k) {
  const View h = b.matrix(b.named("attention_norm"), b.stream_rows(), b.shape().dim);
  b.norm(ModelPart::kAttentionNorm, k.x, h);
  k.h = b.all_tokens(ModelPart::kAttentionNorm, "attention_norm of all", h);
}

void make_qkv(Builder& b, SavedActivations& k) {
  const spec::ModelSpec& m = b.model();
  const BlockShape& s = b.shape();
  const std::int64_t tokens = b.program().micro_tokens();
  attention_norm(b, k);
  k.qkv = b.matrix(b.named("qkv"), tokens, s.qkv());
  View bias;
  b.forward(ModelPart::kQkv, k.h, b.weight(ModelPart::kQkv), k.qkv, nullptr,
            bias_view(b, ModelPart::kQkv, bias));
  if (has_heads(m)) k.heads = b.matrix(b.named("heads"), tokens, s.q + s.kv);
  const auto normalise = [&](ModelPart part, std::int64_t first, std::int64_t count) {
    if (!has_heads(m)) return;
    head_norm(b, part, k.qkv.columns(first, count), k.heads.columns(first, count));
  };
  const auto rotate = [&](std::int64_t first, std::int64_t count) {
    if (m.positions != spec::Positions::kRope) return;
    const View heads = query_key(k, s).columns(first, count);
    b.emit({.kind = OpKind::kRotate, .part = ModelPart::kRope, .out = {heads}});
  };
  if (b.shares_sequences()) {  // keys first: they are gathered while queries are computed
    normalise(ModelPart::kKeyNorm, s.q, s.kv);
    rotate(s.q, s.kv);
    share_keys(b, k);
    normalise(ModelPart::kQueryNorm, 0, s.q);
    return rotate(0, s.q);
  }
  normalise(ModelPart::kQueryNorm, 0, s.q);
  normalise(ModelPart::kKeyNorm, s.q, s.kv);
  rotate(0, s.q + s.kv);
}

double attention_flops(const Builder& b, double passes) {
  const Program& p = b.program();
  // Causal: half of the square of scores, computed once and used once per pass. With a document
  // mask less of it is needed, depending on the data: this is the maximum.
  return passes * 2.0 * static_cast<double>(p.micro_tokens()) *
         static_cast<double>(p.choices.sequence) * static_cast<double>(b.shape().q) / 2.0;
}

void attend(Builder& b, SavedActivations& k) {
  const BlockShape& s = b.shape();
  const std::int64_t tokens = b.program().micro_tokens();
  const View qk = query_key(k, s);
  k.o = b.matrix(b.named("attention"), tokens, s.q);
  k.log_sum_exp = b.matrix(b.named("log_sum_exp"), tokens, s.q / b.model().head_dim, Dtype::kF32,
                           Storage::kActivations);
  if (b.shares_sequences()) return attend_in_context(b, k);
  b.emit_within_documents(
      {.kind = OpKind::kAttention,
       .part = ModelPart::kAttention,
       .in = {qk.columns(0, s.q), qk.columns(s.q, s.kv), k.qkv.columns(s.q + s.kv, s.kv)},
       .out = {k.o, k.log_sum_exp},
       .sequences = b.program().choices.micro_batch,
       .flops = attention_flops(b, 2)});
}

void attention_out(Builder& b, SavedActivations& k) {
  k.x1 = b.matrix(b.named("attention_out"), b.stream_rows(), b.shape().dim);
  View bias;
  b.forward_into_stream(ModelPart::kAttentionOut, "attention_out addend", k.o, k.x1, k.x,
                        bias_view(b, ModelPart::kAttentionOut, bias));
}

bool is_mixture(const Builder& b) {
  return b.model().is_moe_layer(b.layer());
}

// `out`: the block's output; null during recomputation.
void gate_up(Builder& b, SavedActivations& k, const View* out = nullptr) {
  if (is_mixture(b)) return forward_mixture(b, k, out);
  k.inner = b.matrix(b.named("gate_up"), b.program().micro_tokens(), b.shape().inner);
  View bias;
  b.forward(ModelPart::kGateUp, k.h2, b.weight(ModelPart::kGateUp), k.inner, nullptr,
            bias_view(b, ModelPart::kGateUp, bias));
}

void activate(Builder& b, SavedActivations& k) {
  if (is_mixture(b)) return activate_mixture(b, k);
  k.a = b.matrix(b.named("activation"), b.program().micro_tokens(), b.shape().ffn);
  b.emit(
      {.kind = OpKind::kActivate, .part = ModelPart::kActivation, .in = {k.inner}, .out = {k.a}});
}

void down(Builder& b, SavedActivations& k, const View& out) {
  if (is_mixture(b)) return mixture_into_stream(b, k, out);
  View bias;
  b.forward_into_stream(ModelPart::kDown, "down addend", k.a, out, k.x1,
                        bias_view(b, ModelPart::kDown, bias));
}

void add_bias_gradient(Builder& b, ModelPart part, const View& dc) {
  if (const Parameter* bias = b.find(part, true)) b.bias_gradient(dc, *bias);
}

View backward_mlp(Builder& b, SavedActivations& k, const View& dx) {
  if (is_mixture(b)) return backward_mixture(b, k, dx);
  const BlockShape& s = b.shape();
  const std::int64_t tokens = b.program().micro_tokens();
  add_bias_gradient(b, ModelPart::kDown, dx);
  const View dout = b.all_tokens(ModelPart::kDown, "gradient of all", dx);
  const View da = b.matrix(b.named("activation gradient"), tokens, s.ffn);
  b.input_gradient(ModelPart::kDown, dout, b.weight(ModelPart::kDown), da);
  // Each element is read before it is overwritten, so both results are written in place.
  Op back{.kind = OpKind::kActivateGrad, .part = ModelPart::kActivation, .in = {k.inner, da}};
  back.out = {k.inner};
  if (k.a.buffer < 0) {
    back.out.push_back(da);
    k.a = da;
  }
  b.emit(std::move(back));
  b.weight_gradient(ModelPart::kDown, dout, k.a, *b.find(ModelPart::kDown));
  if (k.h2.buffer < 0) {
    b.enter(Phase::kRecompute, b.layer());
    make_mlp_norm(b, k);
    b.enter(Phase::kBackward, b.layer());
  }
  add_bias_gradient(b, ModelPart::kGateUp, k.inner);
  b.weight_gradient(ModelPart::kGateUp, k.inner, k.h2, *b.find(ModelPart::kGateUp));
  const View dh2 = b.matrix(b.named("mlp_norm gradient"), b.stream_rows(), s.dim);
  b.gradient_into_stream(ModelPart::kGateUp, "mlp_norm gradient addend", k.inner,
                         b.weight(ModelPart::kGateUp), dh2);
  const View dx1 = b.in_place_of(dx, "gradient after attention");
  b.norm_gradient(ModelPart::kMlpNorm, dh2, k.x1, &dx, dx1);
  return dx1;
}

View backward_attention(Builder& b, SavedActivations& k, const View& dx) {
  const spec::ModelSpec& m = b.model();
  const BlockShape& s = b.shape();
  const std::int64_t tokens = b.program().micro_tokens();
  const View dx1 = b.all_tokens(ModelPart::kAttentionOut, "gradient of all", dx);
  const auto out_gradients = [&] {
    add_bias_gradient(b, ModelPart::kAttentionOut, dx);
    b.weight_gradient(ModelPart::kAttentionOut, dx1, k.o, *b.find(ModelPart::kAttentionOut));
  };
  if (!b.shares_sequences()) out_gradients();
  const View d_o = b.matrix(b.named("attention gradient"), tokens, s.q);
  b.input_gradient(ModelPart::kAttentionOut, dx1, b.weight(ModelPart::kAttentionOut), d_o);

  const View qk = query_key(k, s);
  const View dqkv = b.matrix(b.named("qkv gradient"), tokens, k.qkv.cols);
  const View dq = dqkv.columns(0, s.q);
  const View dk = dqkv.columns(s.q, s.kv);
  if (b.shares_sequences()) {
    const Op exchange = attention_gradients_in_context(b, k, d_o, dq);
    out_gradients();  // while gradients of keys and values are in flight
    add_key_gradients(b, exchange, dqkv.columns(s.q, 2 * s.kv));
  } else {
    b.emit_within_documents({.kind = OpKind::kAttentionGrad,
                             .part = ModelPart::kAttention,
                             .in = {qk.columns(0, s.q), qk.columns(s.q, s.kv),
                                    k.qkv.columns(s.q + s.kv, s.kv), k.o, k.log_sum_exp, d_o},
                             .out = {dq, dk, dqkv.columns(s.q + s.kv, s.kv)},
                             .sequences = b.program().choices.micro_batch,
                             .flops = attention_flops(b, 5)});
  }
  if (m.positions == spec::Positions::kRope) {
    b.emit({.kind = OpKind::kRotateGrad,
            .part = ModelPart::kRope,
            .out = {dqkv.columns(0, s.q + s.kv)}});
  }
  if (has_heads(m)) {
    head_norm_gradient(b, ModelPart::kQueryNorm, dq, k.qkv.columns(0, s.q));
    head_norm_gradient(b, ModelPart::kKeyNorm, dk, k.qkv.columns(s.q, s.kv));
  }
  if (k.h.buffer < 0) {
    b.enter(Phase::kRecompute, b.layer());
    attention_norm(b, k);
    b.enter(Phase::kBackward, b.layer());
  }
  add_bias_gradient(b, ModelPart::kQkv, dqkv);
  b.weight_gradient(ModelPart::kQkv, dqkv, k.h, *b.find(ModelPart::kQkv));
  const View dh = b.matrix(b.named("attention_norm gradient"), b.stream_rows(), s.dim);
  b.gradient_into_stream(ModelPart::kQkv, "attention_norm gradient addend", dqkv,
                         b.weight(ModelPart::kQkv), dh);
  const View before = b.in_place_of(dx, "gradient before attention");
  b.norm_gradient(ModelPart::kAttentionNorm, dh, k.x, &dx, before);
  return before;
}

}  // namespace

void make_mlp_norm(Builder& b, SavedActivations& k) {
  const View h = b.matrix(b.named("mlp_norm"), b.stream_rows(), b.shape().dim);
  b.norm(ModelPart::kMlpNorm, k.x1, h);
  k.h2 = b.all_tokens(ModelPart::kMlpNorm, "mlp_norm of all", h);
}

View query_key(const SavedActivations& k, const BlockShape& s) {
  const View& from = k.heads.buffer >= 0 ? k.heads : k.qkv;
  return from.columns(0, s.q + s.kv);
}

std::int32_t attention_unit(const Builder& b) {
  return b.find(ModelPart::kQkv)->unit;
}

// For a mixture: the unit without its experts, if these are a separate unit.
std::int32_t mlp_unit(const Builder& b) {
  return b.find(is_mixture(b) ? ModelPart::kRouter : ModelPart::kGateUp)->unit;
}

bool has_experts_apart(const Builder& b) {
  return is_mixture(b) && b.program().choices.layout.spreads_experts();
}

SavedActivations forward_block(Builder& b, const View& x, const View& out) {
  SavedActivations k;
  k.x = x;
  b.use(attention_unit(b));
  make_qkv(b, k);
  attend(b, k);
  attention_out(b, k);
  b.use(mlp_unit(b));
  make_mlp_norm(b, k);
  gate_up(b, k, &out);
  activate(b, k);
  down(b, k, out);
  return k;
}

View backward_block(Builder& b, SavedActivations k, const View& dx) {
  const std::int32_t layer = b.layer();
  const KeptParts kept = recomputes_layer(layer, b.model().layers)
                             ? kept_by(b.program().choices.recompute)
                             : KeptParts{};
  b.enter(Phase::kRecompute, layer);
  if (kept.attention && b.shares_sequences()) share_keys(b, k);
  if (!kept.attention) {
    const View x = k.x;
    k = {};
    k.x = x;
    b.use(attention_unit(b));
    make_qkv(b, k);
    attend(b, k);
    attention_out(b, k);
    b.use(mlp_unit(b));
    make_mlp_norm(b, k);
    gate_up(b, k);
  } else if (!kept.gate_up) {
    b.use(mlp_unit(b));
    make_mlp_norm(b, k);
    gate_up(b, k);
    k.h = {};
  } else if (!kept.norms) {
    k.h = {};
    k.h2 = {};
  }
  if (!kept.activation) k.a = k.shared_a = {};
  b.enter(Phase::kBackward, layer);
  if (!has_experts_apart(b)) b.use(mlp_unit(b));
  const View dx1 = backward_mlp(b, k, dx);
  const bool apart = mlp_unit(b) != attention_unit(b);
  if (apart) b.finish_gradients(mlp_unit(b));
  b.use(attention_unit(b));
  const View before = backward_attention(b, k, dx1);
  const std::vector<Unit>& units = b.program().units;
  for (std::size_t i = 0; i < units.size(); ++i) {
    const auto unit = static_cast<std::int32_t>(i);
    const bool is_finished = units[i].experts || (apart && unit == mlp_unit(b));
    if (units[i].layer == layer && !is_finished) b.finish_gradients(unit);
  }
  return before;
}

std::vector<std::int32_t> units_used(const Builder& b, Phase phase) {
  const std::int32_t attention = attention_unit(b);
  const std::int32_t mlp = mlp_unit(b);
  const KeptParts kept = recomputes_layer(b.layer(), b.model().layers)
                             ? kept_by(b.program().choices.recompute)
                             : KeptParts{};
  if (has_experts_apart(b)) {
    const std::int32_t experts = b.find(ModelPart::kGateUp)->unit;
    if (phase == Phase::kForward) return {mlp, experts};
    // The rest of the block is needed after the experts in any case, and before them if norms are
    // recomputed.
    return kept.norms ? std::vector{experts, mlp} : std::vector{mlp, experts, mlp};
  }
  if (phase == Phase::kForward) return {attention, mlp};
  if (!kept.attention) return {attention, mlp, attention};
  return {mlp, attention};
}

}  // namespace assay::step
