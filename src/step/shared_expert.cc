#include "step/shared_expert.h"

namespace assay::step {

bool has_shared(const Builder& b) {
  return b.model().shared_ffn > 0;
}

void forward_shared(Builder& b, SavedActivations& k) {
  if (!has_shared(b)) return;
  k.shared_inner =
      b.matrix(b.named("shared gate_up"), b.program().micro_tokens(), b.shape().shared_inner);
  b.forward(ModelPart::kSharedGateUp, k.h2, b.weight(ModelPart::kSharedGateUp), k.shared_inner);
}

void activate_shared(Builder& b, SavedActivations& k) {
  if (!has_shared(b)) return;
  k.shared_a =
      b.matrix(b.named("shared activation"), b.program().micro_tokens(), b.shape().shared_ffn);
  b.emit({.kind = OpKind::kActivate,
          .part = ModelPart::kSharedGateUp,
          .in = {k.shared_inner},
          .out = {k.shared_a}});
}

void shared_into(Builder& b, SavedActivations& k, const View& sum, const View* residual) {
  if (!has_shared(b)) return;
  b.forward(ModelPart::kSharedDown, k.shared_a, b.weight(ModelPart::kSharedDown), sum, residual);
}

void backward_shared(Builder& b, SavedActivations& k, const View& dout) {
  if (!has_shared(b)) return;
  const View dshared =
      b.matrix(b.named("shared activation gradient"), dout.rows, b.shape().shared_ffn);
  b.input_gradient(ModelPart::kSharedDown, dout, b.weight(ModelPart::kSharedDown), dshared);
  Op shared{.kind = OpKind::kActivateGrad,
            .part = ModelPart::kSharedGateUp,
            .in = {k.shared_inner, dshared},
            .out = {k.shared_inner}};
  if (k.shared_a.buffer < 0) {
    shared.out.push_back(dshared);
    k.shared_a = dshared;
  }
  b.emit(std::move(shared));
  b.weight_gradient(ModelPart::kSharedDown, dout, k.shared_a, *b.find(ModelPart::kSharedDown));
}

void add_shared_gradients(Builder& b, SavedActivations& k, const View& dh) {
  if (!has_shared(b)) return;
  b.weight_gradient(ModelPart::kSharedGateUp, k.shared_inner, k.h2,
                    *b.find(ModelPart::kSharedGateUp));
  b.input_gradient(ModelPart::kSharedGateUp, k.shared_inner, b.weight(ModelPart::kSharedGateUp), dh,
                   true);
}

}  // namespace assay::step
