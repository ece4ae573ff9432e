// The MLP of a mixture: a router chooses k experts for each token, and each expert computes the
// tokens that chose it.
//
//   h ─ router ─ logits ─ kRoute ─ weights, experts of each token's k slots
//                                     └ kSortRows ─ rows: slots in the order of experts, first rows
//   h ─ kGatherRows ─ rows ─ gate|up ─ activation x weight ─ down ─ kCombineRows ─ sums of k rows
//
// The router's weight is applied before the down projection, so the output of that need not be
// kept. For the same reason rows are gathered again in the backward pass. Sorting is stable and
// each token reads its rows in the order of its slots: no sum depends on timing.
//
// Tensor-parallel ranks have a part of every expert's width, and all of the router, for which each
// computes a part of the gradient; only one rank adds the gradients of the router's losses.
//
// With expert parallelism, rows move to the ranks with their experts and back (expert_exchange.h),
// while the shared expert is computed, if there is one. Experts are then a separate unit, whose
// weights may be gathered into the buffer of the block's other weights: those are used before the
// experts or after them.
#include "step/mixture.h"

#include "base/check.h"
#include "step/block.h"
#include "step/expert_exchange.h"
#include "step/shared_expert.h"

namespace assay::step {
namespace {

View floats(Builder& b, const char* name, std::int64_t rows, std::int64_t cols) {
  return b.matrix(b.named(name), rows, cols, Dtype::kF32, Storage::kActivations);
}

View integers(Builder& b, const char* name, std::int64_t rows, std::int64_t cols) {
  return b.matrix(b.named(name), rows, cols, Dtype::kI32, Storage::kActivations);
}

View expert_rows(Builder& b, const char* name, std::int64_t cols) {
  return b.matrix(b.named(name), rows_of_own_experts(b), cols);
}

// Uses the weights of experts that are a separate unit; otherwise the block has already used them.
void use_experts(Builder& b) {
  if (experts_are_spread(b)) b.use(b.find(ModelPart::kGateUp)->unit);
}

void use_remaining_units(Builder& b) {
  if (experts_are_spread(b)) b.use(b.find(ModelPart::kRouter)->unit);
}

// The flags and operands of kGroupedMatmul that its three uses have in common.
Op grouped(const Builder& b, ModelPart part, const View& a, const View& other,
           const View& first_rows, const View& c) {
  return {.kind = OpKind::kGroupedMatmul,
          .part = part,
          .in = {a, other, first_rows},
          .out = {c},
          .pieces = b.program().choices.layout.expert.ranks};
}

// For as many rows as this rank's tokens have: its experts get other ranks' rows in exchange, so on
// average each rank computes that many. For totals, as many as expert_load says.
double flops_of_rows(const Builder& b, const View& rows, const View& made) {
  const bool loaded = b.program().choices.expert_load > 0;
  const std::int64_t count =
      loaded ? rows_of_own_experts(b) : rows_of_experts(b.model(), b.program().micro_tokens());
  return 2.0 * static_cast<double>(count * rows.cols) * static_cast<double>(made.cols);
}

void forward_by_expert(Builder& b, ModelPart part, const SavedActivations& k, const View& a,
                       const View& c) {
  Op op = grouped(b, part, a, b.weight(part), k.routed.first_rows, c);
  op.transpose_b = true;
  op.flops = flops_of_rows(b, a, c);
  if (b.in_fp8()) b.to_fp8_forward(op);
  b.emit(std::move(op));
}

void row_gradients(Builder& b, ModelPart part, const SavedActivations& k, const View& dc,
                   const View& da) {
  Op op = grouped(b, part, dc, b.weight(part), k.routed.first_rows, da);
  op.flops = flops_of_rows(b, dc, da);
  if (b.in_fp8()) b.to_fp8_input_gradient(op);
  b.emit(std::move(op));
}

void expert_gradients(Builder& b, ModelPart part, const SavedActivations& k, const View& dc,
                      const View& a) {
  const Parameter& weight = *b.find(part);
  const View first_rows = k.routed.first_rows;
  b.make_weight_gradient([&b, &weight, part, dc, a, first_rows] {
    Op op = grouped(b, part, dc, a, first_rows, b.gradient(weight));
    op.transpose_a = true;
    op.flops = flops_of_rows(b, dc, a);
    if (b.in_fp8()) b.to_fp8_weight_gradient(op);
    b.emit(std::move(op));
  });
}

View gather_rows(Builder& b, ModelPart part, const SavedActivations& k, const char* name,
                 const View& x) {
  const View rows = b.matrix(b.named(name), k.routed.slots.rows, x.cols);
  b.emit({.kind = OpKind::kGatherRows, .part = part, .in = {x, k.routed.slots}, .out = {rows}});
  return rows;
}

constexpr const char* kInput = "expert input";

RowsInFlight send_input(Builder& b, SavedActivations& k) {
  return send_to_experts(b, ModelPart::kGateUp, k.routed, kInput,
                         gather_rows(b, ModelPart::kGateUp, k, kInput, k.h2));
}

void combine_rows(Builder& b, ModelPart part, const SavedActivations& k, const View& rows,
                  const View& sums, const View* residual) {
  Op op{.kind = OpKind::kCombineRows, .part = part, .in = {rows, k.routed.rows}, .out = {sums}};
  if (residual != nullptr) op.in.push_back(*residual);
  op.residual = residual != nullptr;
  b.emit(std::move(op));
}

bool is_alone(const Builder& b) {
  return b.program().choices.layout.tensor.ranks == 1;
}

// Returns the exchange still in flight, which the activation needs.
std::optional<Op> choose_experts(Builder& b, SavedActivations& k) {
  const spec::ModelSpec& m = b.model();
  const std::int64_t tokens = b.program().micro_tokens();
  Routed& r = k.routed;
  r.logits = floats(b, "router logits", tokens, m.experts);
  b.forward(ModelPart::kRouter, k.h2, b.weight(ModelPart::kRouter), r.logits);
  r.weights = floats(b, "router weights", tokens, m.experts_per_token);
  r.experts = integers(b, "experts", tokens, m.experts_per_token);
  r.counts = floats(b, "expert counts", 1, m.experts);
  Op op{.kind = OpKind::kRoute,
        .part = ModelPart::kRouter,
        .in = {r.logits},
        .out = {r.weights, r.experts, r.counts}};
  if (const Parameter* bias = b.find(ModelPart::kRouter, true)) op.in.push_back(b.weight(*bias));
  const bool is_counted = b.program().choices.purpose != Purpose::kLogits;
  const bool counts = b.phase() == Phase::kForward && is_counted;
  counts ? b.emit_counting(std::move(op)) : b.emit(std::move(op));

  const std::int64_t rows = rows_of_experts(m, tokens);
  r.rows = integers(b, "rows of slots", tokens, m.experts_per_token);
  r.slots = integers(b, "slots of rows", rows, 1);
  r.first_rows = integers(b, "first rows of experts", 1, m.experts + 1);
  Op sort{.kind = OpKind::kSortRows,
          .part = ModelPart::kRouter,
          .in = {r.experts},
          .out = {r.rows, r.slots, r.first_rows},
          .most_rows = most_rows_of_expert(m, tokens)};
  if (experts_are_spread(b)) {
    const std::int64_t ranks = b.program().choices.layout.expert.ranks;
    r.sent = integers(b, "expert rows sent", ranks, m.experts / ranks);
    sort.out.push_back(r.sent);
  }
  b.emit(std::move(sort));
  return exchange_row_counts(b, r);
}

// The gradient of the router's input: through its weights, and from its losses.
void router_gradients(Builder& b, SavedActivations& k, const View& dweights, const View& dh) {
  const Routed& r = k.routed;
  const View dlogits = b.matrix(b.named("router gradient"), r.logits.rows, r.logits.cols);
  Op op{.kind = OpKind::kRouteGrad,
        .part = ModelPart::kRouter,
        .in = {r.logits, r.weights, r.experts, r.rows, r.counts, dweights},
        .out = {dlogits},
        .adds_losses = b.program().choices.layout.tensor.rank == 0};
  if (const Parameter* bias = b.find(ModelPart::kRouter, true)) {
    op.out.push_back(b.vector_gradient(*bias));
  }
  b.emit(std::move(op));
  b.weight_gradient(ModelPart::kRouter, dlogits, k.h2, *b.find(ModelPart::kRouter));
  b.input_gradient(ModelPart::kRouter, dlogits, b.weight(ModelPart::kRouter), dh, true);
}

// Starts the sum that rows of experts are added to: the stream, or a tensor-parallel rank's addend
// to it.
void begin_stream(Builder& b, SavedActivations& k, const View& out) {
  k.sum = b.addend("mixture addend", out);
  shared_into(b, k, k.sum, is_alone(b) ? &k.x1 : nullptr);
}

// Gathers the experts' input rows again, unless that has been done already.
RowsInFlight send_input_again(Builder& b, SavedActivations& k) {
  if (k.expert_input.buffer >= 0) return {k.expert_input, std::nullopt};
  if (k.h2.buffer < 0) {
    b.enter(Phase::kRecompute, b.layer());
    use_remaining_units(b);
    make_mlp_norm(b, k);
    b.enter(Phase::kBackward, b.layer());
  }
  return send_input(b, k);
}

}  // namespace

void forward_mixture(Builder& b, SavedActivations& k, const View* out) {
  std::optional<Op> weights;
  if (k.routed.logits.buffer < 0) weights = choose_experts(b, k);
  const RowsInFlight sent = send_input(b, k);
  if (experts_are_spread(b)) {
    forward_shared(b, k);
    if (out != nullptr) {
      activate_shared(b, k);
      begin_stream(b, k, *out);
    }
    use_experts(b);
  }
  const View rows = rows_at_experts(b, ModelPart::kGateUp, k.routed, kInput, sent);
  if (weights) b.wait(*weights);
  k.inner = expert_rows(b, "gate_up", b.shape().expert_inner);
  forward_by_expert(b, ModelPart::kGateUp, k, rows, k.inner);
  if (!experts_are_spread(b)) {
    forward_shared(b, k);
  } else if (b.phase() == Phase::kRecompute) {
    k.expert_input = rows;
  }
}

void activate_mixture(Builder& b, SavedActivations& k) {
  k.a = expert_rows(b, "activation", b.shape().expert_ffn);
  b.emit({.kind = OpKind::kActivate,
          .part = ModelPart::kActivation,
          .in = {k.inner, k.routed.row_weights, k.routed.row_sources},
          .out = {k.a}});
  if (!experts_are_spread(b)) activate_shared(b, k);
}

void mixture_into_stream(Builder& b, SavedActivations& k, const View& out) {
  const View made = expert_rows(b, "expert output", b.shape().dim);
  forward_by_expert(b, ModelPart::kDown, k, k.a, made);
  const RowsInFlight sent = send_to_tokens(b, ModelPart::kDown, k.routed, "expert output", made);
  if (!experts_are_spread(b)) begin_stream(b, k, out);
  const View* before = is_alone(b) ? &k.x1 : nullptr;
  combine_rows(b, ModelPart::kDown, k, rows_at_tokens(b, sent), k.sum,
               has_shared(b) ? &k.sum : before);
  b.add_up(ModelPart::kDown, k.sum, out, &k.x1, nullptr);
}

View backward_mixture(Builder& b, SavedActivations& k, const View& dx) {
  const BlockShape& s = b.shape();
  constexpr const char* kOutput = "expert output gradient";
  const View dout = b.all_tokens(ModelPart::kDown, "gradient of all", dx);
  const RowsInFlight output = send_to_experts(b, ModelPart::kDown, k.routed, kOutput,
                                              gather_rows(b, ModelPart::kDown, k, kOutput, dout));
  // If rows move to other ranks, this starts as early as possible; otherwise as late.
  RowsInFlight input;
  if (experts_are_spread(b)) input = send_input_again(b, k);
  use_experts(b);
  const View dmade = rows_at_experts(b, ModelPart::kDown, k.routed, kOutput, output);
  const View da = expert_rows(b, "activation gradient", s.expert_ffn);
  row_gradients(b, ModelPart::kDown, k, dmade, da);
  const View& weights = k.routed.row_weights;
  const View drow_weights = floats(b, "router weights gradient", weights.rows, weights.cols);
  // As in a dense block, both results are written in place.
  Op back{.kind = OpKind::kActivateGrad,
          .part = ModelPart::kActivation,
          .in = {k.inner, da, weights, k.routed.row_sources},
          .out = {k.inner, drow_weights}};
  if (k.a.buffer < 0) {
    back.out.push_back(da);
    k.a = da;
  }
  b.emit(std::move(back));
  const RowsInFlight numbers = send_numbers_to_slots(b, ModelPart::kActivation, k.routed,
                                                     "router weights gradient", drow_weights);
  expert_gradients(b, ModelPart::kDown, k, dmade, k.a);
  if (!experts_are_spread(b)) {
    backward_shared(b, k, dout);
    input = send_input_again(b, k);
  }
  const View rows = k.expert_input.buffer >= 0
                        ? k.expert_input
                        : rows_at_experts(b, ModelPart::kGateUp, k.routed, kInput, input);
  const View drows = expert_rows(b, "expert input gradient", s.dim);
  if (experts_are_spread(b)) {
    row_gradients(b, ModelPart::kGateUp, k, k.inner, drows);
  } else {
    expert_gradients(b, ModelPart::kGateUp, k, k.inner, rows);
    row_gradients(b, ModelPart::kGateUp, k, k.inner, drows);
  }
  const RowsInFlight returned =
      send_to_tokens(b, ModelPart::kGateUp, k.routed, "expert input gradient", drows);
  if (experts_are_spread(b)) {  // while they are in flight
    expert_gradients(b, ModelPart::kGateUp, k, k.inner, rows);
    b.finish_gradients(b.find(ModelPart::kGateUp)->unit);
    use_remaining_units(b);
    backward_shared(b, k, dout);
  }

  const View dh2 = b.matrix(b.named("mlp_norm gradient"), b.stream_rows(), s.dim);
  const View sum = b.addend("mlp_norm gradient addend", dh2);
  combine_rows(b, ModelPart::kGateUp, k, rows_at_tokens(b, returned), sum, nullptr);
  router_gradients(b, k,
                   numbers_at_slots(b, ModelPart::kActivation, k.routed,
                                    "router weights gradient of slots", numbers),
                   sum);
  add_shared_gradients(b, k, sum);
  b.add_up(ModelPart::kGateUp, sum, dh2, nullptr, nullptr);
  const View dx1 = b.in_place_of(dx, "gradient after attention");
  b.norm_gradient(ModelPart::kMlpNorm, dh2, k.x1, &dx, dx1);
  return dx1;
}

// The rank's first mixture starts the micro-batch's sums; loads are summed over all micro-batches.
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
  const std::int64_t first = repeats_.first_mixture ? 1 : 0;
  const std::int64_t begun = repeats_.first_micro ? 1 : 0;
  add(true, true, first * begun);
  add(true, false, first * (repeats_.micros - begun));
  add(false, true, (repeats_.layers - first) * begun);
  add(false, false, (repeats_.layers - first) * (repeats_.micros - begun));
}

std::int64_t Builder::mixture_of_layer(std::int32_t layer) const {
  std::int64_t before = 0;
  for (std::int32_t i = 0; i < layer; ++i) before += model().is_moe_layer(i) ? 1 : 0;
  return before;
}

}  // namespace assay::step
