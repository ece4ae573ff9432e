// The products of a block in fp8: each operand is divided by a power of two, so that its largest
// element uses the range of its type, and rounded. Scales are computed in the step itself, not
// taken from earlier steps, so a run has no more state than in bf16.
//
// fp8 tensor cores need both operands contiguous along the summed dimension. In the forward pass
// they are; the products of the backward pass need transposes, which are written while the original
// is read anyway.
//
// Gradients have the same type as the rest. E5M2 would give them more range, but with one scale per
// matrix and step E4M3 has enough, with half the rounding error.
//
// Products of experts: one scale for all rows, and one for the weights of all experts; rows without
// a slot are left out. If the sum is over an expert's rows, its columns of the transposes begin and
// end at a multiple of kFp8Alignment, and the gaps are filled with zeros.
#include "step/builder.h"
#include "step/rules.h"

namespace assay::step {
namespace {

bool by_expert(const Op& product) {
  return product.kind == OpKind::kGroupedMatmul;
}

// Columns in the transpose of the rows of all experts.
std::int64_t padded_rows(const Op& product, std::int64_t rows) {
  const std::int64_t experts = (product.in[2].cols - 1) / product.pieces;
  const std::int64_t most = rows + experts * (kFp8Alignment - 1);
  return most / kFp8Alignment * kFp8Alignment;
}

// After two operands come the first rows, if it is a product of experts, and the scales.
void set_operands(Op& op, const View& a, const View& b, const View& scale_a, const View& scale_b) {
  op.in[0] = a;
  op.in[1] = b;
  op.in.insert(op.in.end(), {scale_a, scale_b});
  op.scaled = true;
  if (by_expert(op)) return;
  op.transpose_a = false;
  op.transpose_b = true;
}

}  // namespace

bool Builder::in_fp8() const {
  return program_.choices.numerics.fp8_blocks && layer_ != kNoLayer;
}

View Builder::scale(const Op& product, const View& x, bool by_row) {
  const View scale = matrix(named("scale"), 1, 1, Dtype::kF32, Storage::kActivations);
  Op op{.kind = OpKind::kScale, .part = product.part, .in = {x}, .out = {scale}};
  if (by_row && by_expert(product)) op.in.push_back(product.in[2]);
  emit(std::move(op));
  return scale;
}

View Builder::quantise(const Op& product, const View& x, const View& scale) {
  const View q = matrix(named("fp8"), x.rows, x.cols, Dtype::kFp8, Storage::kActivations);
  emit({.kind = OpKind::kQuantise, .part = product.part, .in = {x, scale}, .out = {q}});
  return q;
}

View Builder::quantise_transposed(const Op& product, const View& x, const View& scale,
                                  bool by_row) {
  const bool pads = by_row && by_expert(product);
  const View q =
      matrix(named("fp8 transposed"), x.cols, pads ? padded_rows(product, x.rows) : x.rows,
             Dtype::kFp8, Storage::kActivations);
  Op op{.kind = OpKind::kQuantise,
        .part = product.part,
        .in = {x, scale},
        .out = {q},
        .transpose_a = true};
  if (pads) {
    op.in.push_back(product.in[2]);
    op.pieces = product.pieces;
  }
  emit(std::move(op));
  return q;
}

// The backward pass reads the same operands, unchanged or recomputed to the same bits, so their
// scales are computed once.
void Builder::to_fp8_forward(Op& op) {
  Quantised& known = quantised(op.part);
  const View a = op.in[0];
  const View weight = op.in[1];
  if (known.input_scale.buffer < 0) {
    known.input_scale = scale(op, a, true);
    known.weight_scale = scale(op, weight, false);
  }
  const View input = quantise(op, a, known.input_scale);
  set_operands(op, input, quantise(op, weight, known.weight_scale), known.input_scale,
               known.weight_scale);
}

// Both products of the backward pass read the gradient, one of them transposed.
const Builder::Quantised& Builder::quantise_gradient(const Op& product) {
  Quantised& known = quantised(product.part);
  if (known.gradient.buffer >= 0) return known;
  const View dc = product.in[0];
  known.gradient_scale = scale(product, dc, true);
  known.gradient =
      matrix(named("fp8 gradient"), dc.rows, dc.cols, Dtype::kFp8, Storage::kActivations);
  known.gradient_t = matrix(named("fp8 gradient transposed"), dc.cols,
                            by_expert(product) ? padded_rows(product, dc.rows) : dc.rows,
                            Dtype::kFp8, Storage::kActivations);
  Op op{.kind = OpKind::kQuantise,
        .part = product.part,
        .in = {dc, known.gradient_scale},
        .out = {known.gradient, known.gradient_t}};
  if (by_expert(product)) {
    op.in.push_back(product.in[2]);
    op.pieces = product.pieces;
  }
  emit(std::move(op));
  return known;
}

void Builder::to_fp8_input_gradient(Op& op) {
  const Quantised& known = quantise_gradient(op);
  const View weight = quantise_transposed(op, op.in[1], known.weight_scale, false);
  set_operands(op, known.gradient, weight, known.gradient_scale, known.weight_scale);
}

void Builder::to_fp8_weight_gradient(Op& op) {
  const Quantised& known = quantise_gradient(op);
  const View a = quantise_transposed(op, op.in[1], known.input_scale, true);
  set_operands(op, known.gradient_t, a, known.gradient_scale, known.input_scale);
}

}  // namespace assay::step
