// The products of a block in fp8: each operand is divided by a power of two, so that its largest
// element fills the range of its type, and rounded. Scales are of the step itself, not of earlier
// ones, so a run has no more state than one in bf16.
//
// Tensor cores of this kind want both operands row by row along what is summed. Forward that is how
// they lie; the products of the backward pass need transposes, which are written where the original
// is read anyway.
//
// Gradients have the same type as the rest. E5M2 has more range for them, but a scale per matrix
// and step leaves E4M3 enough of it, and half the rounding.
#include "step/builder.h"

namespace assay::step {

bool Builder::in_fp8() const {
  return program_.choices.numerics.fp8_blocks && layer_ != kNoLayer;
}

View Builder::scale(Part part, const View& x) {
  const View scale = matrix(named("scale"), 1, 1, Dtype::kF32, Storage::kActivations);
  emit({.kind = Kind::kScale, .part = part, .in = {x}, .out = {scale}});
  return scale;
}

View Builder::quantise(Part part, const View& x, const View& scale, bool transpose) {
  const View q = matrix(named(transpose ? "fp8 transposed" : "fp8"), transpose ? x.cols : x.rows,
                        transpose ? x.rows : x.cols, Dtype::kFp8, Storage::kActivations);
  emit({.kind = Kind::kQuantise,
        .part = part,
        .in = {x, scale},
        .out = {q},
        .transpose_a = transpose});
  return q;
}

// The backward pass reads the same operands, unchanged or recomputed to the same bits: their scales
// are found once.
void Builder::to_fp8_forward(Op& op) {
  Quantised& known = quantised(op.part);
  const View a = op.in[0];
  const View weight = op.in[1];
  if (known.input_scale.buffer < 0) {
    known.input_scale = scale(op.part, a);
    known.weight_scale = scale(op.part, weight);
  }
  op.in[0] = quantise(op.part, a, known.input_scale, false);
  op.in[1] = quantise(op.part, weight, known.weight_scale, false);
  op.in.insert(op.in.end(), {known.input_scale, known.weight_scale});
  op.scaled = true;
}

// Both products of the backward pass read the gradient, one of them transposed.
const Builder::Quantised& Builder::quantise_gradient(Part part, const View& dc) {
  Quantised& known = quantised(part);
  if (known.gradient.buffer >= 0) return known;
  known.gradient_scale = scale(part, dc);
  known.gradient =
      matrix(named("fp8 gradient"), dc.rows, dc.cols, Dtype::kFp8, Storage::kActivations);
  known.gradient_t = matrix(named("fp8 gradient transposed"), dc.cols, dc.rows, Dtype::kFp8,
                            Storage::kActivations);
  emit({.kind = Kind::kQuantise,
        .part = part,
        .in = {dc, known.gradient_scale},
        .out = {known.gradient, known.gradient_t}});
  return known;
}

void Builder::to_fp8_back_to_input(Op& op) {
  const Quantised& known = quantise_gradient(op.part, op.in[0]);
  const View weight = op.in[1];
  op.in = {known.gradient, quantise(op.part, weight, known.weight_scale, true),
           known.gradient_scale, known.weight_scale};
  op.transpose_b = true;
  op.scaled = true;
}

void Builder::to_fp8_back_to_weight(Op& op) {
  const Quantised& known = quantise_gradient(op.part, op.in[0]);
  const View a = op.in[1];
  op.in = {known.gradient_t, quantise(op.part, a, known.input_scale, true), known.gradient_scale,
           known.input_scale};
  op.transpose_a = false;
  op.transpose_b = true;
  op.scaled = true;
}

}  // namespace assay::step
