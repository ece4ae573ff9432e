// The MLP of a mixture: a router chooses k experts for each token, and each expert computes the
// tokens that chose it.
//
//   h ─ router ─ logits ─ kRoute ─ weights, experts of each token's k slots
//                                     └ kSortRows ─ rows: slots in the order of experts, first rows
//   h ─ kGatherRows ─ rows ─ gate|up ─ activation x weight ─ down ─ kCombineRows ─ sums of k rows
//
// A router's weight multiplies before the product down, so what comes out of that is not kept. Rows
// are gathered again in the backward pass, for the same reason. Sorting is stable and each token
// reads its rows in the order of its slots: no sum depends on timing.
//
// Tensor-parallel ranks have a part of every expert's width, and all of them the router, for which
// each makes a part of the gradient; what the router's losses add is one rank's.
#include "base/check.h"
#include "step/builder.h"

namespace assay::step {
namespace {

View floats(Builder& b, const char* name, std::int64_t rows, std::int64_t cols) {
  return b.matrix(b.named(name), rows, cols, Dtype::kF32, Storage::kActivations);
}

View integers(Builder& b, const char* name, std::int64_t rows, std::int64_t cols) {
  return b.matrix(b.named(name), rows, cols, Dtype::kI32, Storage::kActivations);
}

View expert_rows(Builder& b, const char* name, std::int64_t cols) {
  return b.matrix(b.named(name), rows_of_experts(b.model(), b.program().micro_tokens()), cols);
}

// What of kGroupedMatmul's flags and operands differs between its three uses.
Op grouped(Part part, const View& a, const View& other, const View& first_rows, const View& c) {
  return {.kind = Kind::kGroupedMatmul, .part = part, .in = {a, other, first_rows}, .out = {c}};
}

double flops_of_rows(const View& rows, const View& made) {
  return 2.0 * static_cast<double>(rows.elements()) * static_cast<double>(made.cols);
}

void forward_by_expert(Builder& b, Part part, const Kept& k, const View& a, const View& c) {
  Op op = grouped(part, a, b.weight(part), k.routed.first_rows, c);
  op.transpose_b = true;
  op.flops = flops_of_rows(a, c);
  b.emit(std::move(op));
}

void back_to_rows(Builder& b, Part part, const Kept& k, const View& dc, const View& da) {
  Op op = grouped(part, dc, b.weight(part), k.routed.first_rows, da);
  op.flops = flops_of_rows(dc, da);
  b.emit(std::move(op));
}

void back_to_experts(Builder& b, Part part, const Kept& k, const View& dc, const View& a) {
  const Parameter& weight = *b.find(part);
  const View first_rows = k.routed.first_rows;
  b.make_weight_gradient([&b, &weight, part, dc, a, first_rows] {
    Op op = grouped(part, dc, a, first_rows, b.gradient(weight));
    op.transpose_a = true;
    op.flops = flops_of_rows(dc, a);
    b.emit(std::move(op));
  });
}

View gather_rows(Builder& b, Part part, const Kept& k, const char* name, const View& x) {
  const View rows = expert_rows(b, name, x.cols);
  b.emit({.kind = Kind::kGatherRows, .part = part, .in = {x, k.routed.slots}, .out = {rows}});
  return rows;
}

void combine_rows(Builder& b, Part part, const Kept& k, const View& rows, const View& sums,
                  const View* residual) {
  Op op{.kind = Kind::kCombineRows, .part = part, .in = {rows, k.routed.rows}, .out = {sums}};
  if (residual != nullptr) op.in.push_back(*residual);
  op.residual = residual != nullptr;
  b.emit(std::move(op));
}

bool is_alone(const Builder& b) {
  return b.program().choices.layout.tensor.ranks == 1;
}

bool has_shared(const Builder& b) {
  return b.model().shared_ffn > 0;
}

void choose_experts(Builder& b, Kept& k) {
  const spec::ModelSpec& m = b.model();
  const std::int64_t tokens = b.program().micro_tokens();
  Routed& r = k.routed;
  r.logits = floats(b, "router logits", tokens, m.experts);
  b.forward(Part::kRouter, k.h2, b.weight(Part::kRouter), r.logits);
  r.weights = floats(b, "router weights", tokens, m.experts_per_token);
  r.experts = integers(b, "experts", tokens, m.experts_per_token);
  r.counts = floats(b, "expert counts", 1, m.experts);
  Op op{.kind = Kind::kRoute,
        .part = Part::kRouter,
        .in = {r.logits},
        .out = {r.weights, r.experts, r.counts}};
  if (const Parameter* bias = b.find(Part::kRouter, true)) op.in.push_back(b.weight(*bias));
  const bool is_counted = b.program().choices.purpose != Purpose::kLogits;
  const bool counts = b.phase() == Phase::kForward && is_counted;
  counts ? b.emit_counting(std::move(op)) : b.emit(std::move(op));

  const std::int64_t rows = rows_of_experts(m, tokens);
  r.rows = integers(b, "rows of slots", tokens, m.experts_per_token);
  r.slots = integers(b, "slots of rows", rows, 1);
  r.first_rows = integers(b, "first rows of experts", 1, m.experts + 1);
  b.emit({.kind = Kind::kSortRows,
          .part = Part::kRouter,
          .in = {r.experts},
          .out = {r.rows, r.slots, r.first_rows},
          .most_rows = most_rows_of_expert(m, tokens)});
}

// The gradient of what the router read: through its weights, and of its losses.
void back_to_router(Builder& b, Kept& k, const View& dweights, const View& dh) {
  const Routed& r = k.routed;
  const View dlogits = b.matrix(b.named("router gradient"), r.logits.rows, r.logits.cols);
  Op op{.kind = Kind::kRouteGrad,
        .part = Part::kRouter,
        .in = {r.logits, r.weights, r.experts, r.rows, r.counts, dweights},
        .out = {dlogits},
        .adds_losses = b.program().choices.layout.tensor.rank == 0};
  if (const Parameter* bias = b.find(Part::kRouter, true)) {
    op.out.push_back(b.vector_gradient(*bias));
  }
  b.emit(std::move(op));
  b.back_to_weight(Part::kRouter, dlogits, k.h2, *b.find(Part::kRouter));
  b.back_to_input(Part::kRouter, dlogits, b.weight(Part::kRouter), dh, true);
}

}  // namespace

void forward_mixture(Builder& b, Kept& k) {
  if (k.routed.logits.buffer < 0) choose_experts(b, k);
  const View rows = gather_rows(b, Part::kGateUp, k, "expert input", k.h2);
  k.inner = expert_rows(b, "gate_up", b.shape().expert_inner);
  forward_by_expert(b, Part::kGateUp, k, rows, k.inner);
  if (!has_shared(b)) return;
  k.shared_inner =
      b.matrix(b.named("shared gate_up"), b.program().micro_tokens(), b.shape().shared_inner);
  b.forward(Part::kSharedGateUp, k.h2, b.weight(Part::kSharedGateUp), k.shared_inner);
}

void activate_mixture(Builder& b, Kept& k) {
  k.a = expert_rows(b, "activation", b.shape().expert_ffn);
  b.emit({.kind = Kind::kActivate,
          .part = Part::kActivation,
          .in = {k.inner, k.routed.weights, k.routed.slots},
          .out = {k.a}});
  if (!has_shared(b)) return;
  k.shared_a =
      b.matrix(b.named("shared activation"), b.program().micro_tokens(), b.shape().shared_ffn);
  b.emit({.kind = Kind::kActivate,
          .part = Part::kSharedGateUp,
          .in = {k.shared_inner},
          .out = {k.shared_a}});
}

void mixture_into_stream(Builder& b, Kept& k, const View& out) {
  const View made = expert_rows(b, "expert output", b.shape().dim);
  forward_by_expert(b, Part::kDown, k, k.a, made);
  const View sum = b.addend("mixture addend", out);
  const View* before = is_alone(b) ? &k.x1 : nullptr;
  if (has_shared(b)) {
    b.forward(Part::kSharedDown, k.shared_a, b.weight(Part::kSharedDown), sum, before);
    before = &sum;
  }
  combine_rows(b, Part::kDown, k, made, sum, before);
  b.add_up(Part::kDown, sum, out, &k.x1, nullptr);
}

View backward_mixture(Builder& b, Kept& k, const View& dx) {
  const BlockShape& s = b.shape();
  const View dout = b.all_tokens(Part::kDown, "gradient of all", dx);
  const View dmade = gather_rows(b, Part::kDown, k, "expert output gradient", dout);
  const View da = expert_rows(b, "activation gradient", s.expert_ffn);
  back_to_rows(b, Part::kDown, k, dmade, da);
  const View dweights =
      floats(b, "router weights gradient", k.routed.weights.rows, k.routed.weights.cols);
  // As in a dense block, both results lie where they came from.
  Op back{.kind = Kind::kActivateGrad,
          .part = Part::kActivation,
          .in = {k.inner, da, k.routed.weights, k.routed.slots},
          .out = {k.inner, dweights}};
  if (k.a.buffer < 0) {
    back.out.push_back(da);
    k.a = da;
  }
  b.emit(std::move(back));
  back_to_experts(b, Part::kDown, k, dmade, k.a);
  if (has_shared(b)) {
    const View dshared = b.matrix(b.named("shared activation gradient"), dout.rows, s.shared_ffn);
    b.back_to_input(Part::kSharedDown, dout, b.weight(Part::kSharedDown), dshared);
    Op shared{.kind = Kind::kActivateGrad,
              .part = Part::kSharedGateUp,
              .in = {k.shared_inner, dshared},
              .out = {k.shared_inner}};
    if (k.shared_a.buffer < 0) {
      shared.out.push_back(dshared);
      k.shared_a = dshared;
    }
    b.emit(std::move(shared));
    b.back_to_weight(Part::kSharedDown, dout, k.shared_a, *b.find(Part::kSharedDown));
  }
  if (k.h2.buffer < 0) {
    b.enter(Phase::kRecompute, b.layer());
    make_mlp_norm(b, k);
    b.enter(Phase::kBackward, b.layer());
  }
  const View rows = gather_rows(b, Part::kGateUp, k, "expert input", k.h2);
  back_to_experts(b, Part::kGateUp, k, k.inner, rows);
  const View drows = expert_rows(b, "expert input gradient", s.dim);
  back_to_rows(b, Part::kGateUp, k, k.inner, drows);

  const View dh2 = b.matrix(b.named("mlp_norm gradient"), b.stream_rows(), s.dim);
  const View sum = b.addend("mlp_norm gradient addend", dh2);
  combine_rows(b, Part::kGateUp, k, drows, sum, nullptr);
  back_to_router(b, k, dweights, sum);
  if (has_shared(b)) {
    b.back_to_weight(Part::kSharedGateUp, k.shared_inner, k.h2, *b.find(Part::kSharedGateUp));
    b.back_to_input(Part::kSharedGateUp, k.shared_inner, b.weight(Part::kSharedGateUp), sum, true);
  }
  b.add_up(Part::kGateUp, sum, dh2, nullptr, nullptr);
  const View dx1 = b.in_place_of(dx, "gradient after attention");
  b.norm_gradient(Part::kMlpNorm, dh2, k.x1, &dx, dx1);
  return dx1;
}

// Of the mixtures that this rank has, the first begins the micro-batch's sums; loads are those of
// all micro-batches.
void Builder::emit_counting(Op op) {
  const auto first_sum = static_cast<unsigned>(op.out.size());
  op.out.push_back(program_.sums.rows_from(micro_, 1).columns(kSummedByLoss, kSummedByRouter));
  op.out.push_back(program_.loads.rows_from(mixture_of_layer(layer_), 1));
  place(op);
  const auto add = [&](bool begins_sums, bool begins_loads, std::int64_t times) {
    op.adds = static_cast<std::uint8_t>((begins_sums ? 0U : 1U << first_sum) |
                                        (begins_loads ? 0U : 2U << first_sum));
    if (times > 0) sink_.add(op, times);
  };
  if (sink_.unrolls()) {
    const bool begins_sums = begun_sums_.insert(micro_).second;
    return add(begins_sums, begun_loads_.insert(layer_).second, 1);
  }
  const std::int64_t first = stands_.first_mixture ? 1 : 0;
  const std::int64_t begun = stands_.first_micro ? 1 : 0;
  add(true, true, first * begun);
  add(true, false, first * (stands_.micros - begun));
  add(false, true, (stands_.layers - first) * begun);
  add(false, false, (stands_.layers - first) * (stands_.micros - begun));
}

std::int64_t Builder::mixture_of_layer(std::int32_t layer) const {
  std::int64_t before = 0;
  for (std::int32_t i = 0; i < layer; ++i) before += model().is_moe_layer(i) ? 1 : 0;
  return before;
}

}  // namespace assay::step
