#include "step/builder.h"

#include <fmt/format.h>

#include "base/check.h"

namespace assay::step {

Builder::Builder(Program& program, Sink& sink)
    : program_(program),
      sink_(sink),
      shape_(block_shape(program.model, program.choices.layout.tensor.ranks)),
      gather_order_(program.units) {
  if (sink.unrolls()) {
    measure_places();
    return;
  }
  const Numerics& n = program.choices.numerics;
  weights_ = sink.add({{}, Storage::kWeights, n.weights, 0});
  gradients_ = sink.add({{}, Storage::kGradients, n.gradients, 0});
}

View Builder::matrix(std::string name, std::int64_t rows, std::int64_t cols) {
  return matrix(std::move(name), rows, cols, program_.choices.numerics.activations,
                Storage::kActivations);
}

View Builder::matrix(std::string name, std::int64_t rows, std::int64_t cols, Dtype type,
                     Storage storage) {
  if (!sink_.unrolls()) return {sink_.add({{}, storage, type, rows * cols}), 0, rows, cols, cols};
  const int nth = named_[{name, phase_}]++;
  const auto [known, is_new] = known_.try_emplace({name, slot_, phase_, nth});
  if (is_new) {
    known->second = {sink_.add({std::move(name), storage, type, rows * cols}), 0, rows, cols, cols};
  }
  ASSAY_CHECK(known->second.rows == rows && known->second.cols == cols,
              "micro-batches must use their buffers alike");
  return known->second;
}

void Builder::begin_pass(std::int32_t micro, std::int32_t slot) {
  micro_ = micro;
  slot_ = slot;
  named_.clear();
  defers_ = is_reordered_ = false;
}

void Builder::place(Op& op) const {
  op.phase = phase_;
  op.layer = layer_;
  op.micro = micro_;
}

void Builder::emit(Op op) {
  place(op);
  sink_.add(std::move(op), times_);
}

void Builder::emit_within_documents(Op op) {
  if (documents_.buffer >= 0) {
    op.in.push_back(documents_);
    op.documents = true;
  }
  emit(std::move(op));
}

std::string Builder::named(const char* what) const {
  if (!sink_.unrolls()) return {};
  const char* again = phase_ == Phase::kRecompute ? " again" : "";
  const char* own = is_reordered_ ? " at the end" : "";
  return layer_ == kNoLayer ? fmt::format("{}{}{}", what, again, own)
                            : fmt::format("layers.{}.{}{}{}", layer_, what, again, own);
}

const Parameter* Builder::find(ModelPart part, bool vector, int nth) const {
  for (const Parameter& p : program_.parameters) {
    if (p.part != part || p.layer != layer_ || p.is_vector() != vector) continue;
    if (nth-- == 0) return &p;
  }
  return nullptr;
}

View Builder::weight(ModelPart part) const {
  const Parameter* parameter = find(part);
  ASSAY_CHECK(parameter != nullptr, "a matrix of this part");
  return weight(*parameter);
}

void Builder::forward(ModelPart part, const View& a, const View& weight, const View& c,
                      const View* residual, const View* bias) {
  Op op{.kind = OpKind::kMatmul, .part = part, .in = {a, weight}, .out = {c}, .transpose_b = true};
  if (residual != nullptr) op.in.push_back(*residual);
  if (bias != nullptr) op.in.push_back(*bias);
  op.residual = residual != nullptr;
  op.bias = bias != nullptr;
  op.flops = 2.0 * static_cast<double>(c.elements()) * static_cast<double>(a.cols);
  if (in_fp8() && part != ModelPart::kRouter) to_fp8_forward(op);
  emit(std::move(op));
}

void Builder::input_gradient(ModelPart part, const View& dc, const View& weight, const View& da,
                             bool adds) {
  Op op{.kind = OpKind::kMatmul, .part = part, .in = {dc, weight}, .out = {da}};
  op.adds = adds ? 1 : 0;
  op.flops = 2.0 * static_cast<double>(da.elements()) * static_cast<double>(dc.cols);
  if (in_fp8() && part != ModelPart::kRouter) to_fp8_input_gradient(op);
  emit(std::move(op));
}

void Builder::weight_gradient(ModelPart part, const View& dc, const View& a,
                              const Parameter& weight, bool begun) {
  make_weight_gradient([=, this] {
    Op op{
        .kind = OpKind::kMatmul,
        .part = part,
        .in = {dc, a},
        .out = {gradient(weight, part == ModelPart::kHead && weight.part == ModelPart::kEmbedding)},
        .transpose_a = true};
    op.adds = begun ? 1 : 0;
    op.flops = 2.0 * static_cast<double>(weight.elements()) * static_cast<double>(a.rows);
    if (in_fp8() && part != ModelPart::kRouter) to_fp8_weight_gradient(op);
    emit(std::move(op));
  });
}

void Builder::bias_gradient(const View& dc, const Parameter& bias) {
  make_weight_gradient([=, this] {
    emit({.kind = OpKind::kBiasGrad, .part = bias.part, .in = {dc}, .out = {gradient(bias)}});
  });
}

void Builder::norm(ModelPart part, const View& x, const View& h) {
  Op op{.kind = OpKind::kNorm, .part = part, .in = {x}, .out = {h}};
  for (int i = 0; const Parameter* p = find(part, true, i); ++i) {
    op.in.push_back(weight(*p));
  }
  emit(std::move(op));
}

void Builder::norm_gradient(ModelPart part, const View& dh, const View& x, const View* before,
                            const View& dx) {
  Op op{.kind = OpKind::kNormGrad, .part = part, .in = {dh, x}, .out = {dx}};
  if (const Parameter* p = find(part, true)) op.in.push_back(weight(*p));
  for (int i = 0; const Parameter* p = find(part, true, i); ++i) {
    op.out.push_back(vector_gradient(*p));
  }
  if (before != nullptr && before->buffer == dx.buffer) {
    op.adds = 1;
  } else if (before != nullptr) {
    op.in.push_back(*before);
    op.residual = true;
  }
  emit(std::move(op));
}

void Builder::make_weight_gradient(std::function<void()> emit) {
  if (!defers_) return emit();
  deferred_[micro_].ops.push_back([this, layer = layer_, emit = std::move(emit)] {
    layer_ = layer;
    emit();
  });
  deferred_[micro_].named = named_;
}

void Builder::make_deferred() {
  Deferred deferred = std::move(deferred_[micro_]);
  deferred_.erase(micro_);
  named_ = std::move(deferred.named);
  for (const auto& make : deferred.ops) make();
}

View Builder::in_place_of(const View& dx, const char* name) {
  return defers_ ? matrix(named(name), dx.rows, dx.cols) : dx;
}

// Until the unit's gradients are complete, its buffer may hold those of another micro-batch: uses a
// copy.
View Builder::vector_gradient(const Parameter& p) {
  if (!defers_ || writes_directly(p.unit)) return gradient(p);
  const View kept = matrix(named("vector gradient"), p.rows, p.cols,
                           program_.choices.numerics.gradients, Storage::kActivations);
  make_weight_gradient([=, this] {
    emit({.kind = OpKind::kFold, .part = p.part, .in = {kept}, .out = {gradient(p)}});
  });
  return kept;
}

}  // namespace assay::step
