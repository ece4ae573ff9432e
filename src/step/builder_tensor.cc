// Communication of tensor-parallel ranks within a block. Each has a part of the heads and of the
// MLP's width, so the products into the stream (after attention, after the activation, and backward
// through q|k|v and gate|up) are addends of a sum:
//
//   a rank's addends for all tokens ─ all-to-all ─ all ranks' addends for its own tokens ─ kSum
//
// With sequence parallelism a rank keeps the stream of its own tokens only, and the input of the
// next products is gathered before them; without it the sums are gathered at once and every rank
// has the whole stream. Either way the communication volume is that of an all-reduce, and sums are
// in rank order.
#include "step/builder.h"

namespace assay::step {

std::int64_t Builder::stream_rows() const {
  const Layout& layout = program_.choices.layout;
  const std::int64_t tokens = program_.micro_tokens();
  return layout.sequence_parallel ? tokens / layout.tensor.ranks : tokens;
}

View Builder::all_tokens(ModelPart part, const char* name, const View& own) {
  if (!program_.choices.layout.sequence_parallel) return own;
  const View all = matrix(named(name), program_.micro_tokens(), own.cols);
  wait(issue({.kind = OpKind::kAllGather,
              .part = part,
              .in = {own},
              .out = {all},
              .axis = Axis::kTensor}));
  return all;
}

View Builder::addend(const char* name, const View& sum) {
  if (program_.choices.layout.tensor.ranks == 1) return sum;
  return matrix(named(name), program_.micro_tokens(), sum.cols);
}

void Builder::add_up(ModelPart part, const View& addend, const View& sum, const View* residual,
                     const View* bias) {
  const Layout& layout = program_.choices.layout;
  const AxisPosition& tensor = layout.tensor;
  if (tensor.ranks == 1) return;
  const std::int64_t rows = addend.rows / tensor.ranks;
  const View addends = matrix(named("addends"), tensor.ranks, rows * addend.cols);
  wait(issue({.kind = OpKind::kAllToAll,
              .part = part,
              .in = {addend},
              .out = {addends},
              .axis = Axis::kTensor}));
  const auto own = [&](const View& x) {
    return layout.sequence_parallel ? x : x.rows_from(tensor.rank * rows, rows);
  };
  Op op{.kind = OpKind::kSum, .part = part, .in = {addends}, .out = {own(sum)}};
  if (residual != nullptr) op.in.push_back(own(*residual));
  if (bias != nullptr) op.in.push_back(*bias);
  op.residual = residual != nullptr;
  op.bias = bias != nullptr;
  emit(std::move(op));
  if (layout.sequence_parallel) return;
  wait(issue({.kind = OpKind::kAllGather,
              .part = part,
              .in = {own(sum)},
              .out = {sum},
              .axis = Axis::kTensor}));
}

void Builder::forward_into_stream(ModelPart part, const char* name, const View& a, const View& c,
                                  const View& residual, const View* bias) {
  const View mine = addend(name, c);
  const bool alone = program_.choices.layout.tensor.ranks == 1;
  forward(part, a, weight(part), mine, alone ? &residual : nullptr, alone ? bias : nullptr);
  add_up(part, mine, c, &residual, bias);
}

void Builder::gradient_into_stream(ModelPart part, const char* name, const View& dc,
                                   const View& weight, const View& da) {
  const View mine = addend(name, da);
  input_gradient(part, dc, weight, mine);
  add_up(part, mine, da, nullptr, nullptr);
}

}  // namespace assay::step
