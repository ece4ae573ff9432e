// Builder: what the files that write a step's ops down share. Behind program.h.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "step/program.h"

namespace assay::step {

class Builder {
 public:
  explicit Builder(Program& program) : program_(program) {}

  // A matrix of its own, in the activations' type unless told.
  View matrix(std::string name, std::int64_t rows, std::int64_t cols);
  View matrix(std::string name, std::int64_t rows, std::int64_t cols, Dtype type, Storage storage);

  // Ops are of this phase, layer and micro-batch until told otherwise.
  void enter(Phase phase, std::int32_t layer = kNoLayer) {
    phase_ = phase;
    layer_ = layer;
  }
  [[nodiscard]] Phase phase() const { return phase_; }
  [[nodiscard]] std::int32_t layer() const { return layer_; }
  void emit(Op op);

  // c = a b^T: activations times a weight, as the forward pass has it. `residual` may be none.
  void forward(Part part, const View& a, const View& weight, const View& c,
               const View* residual = nullptr, const View* bias = nullptr);
  // For c = a b^T: da = dc b.
  void back_to_input(Part part, const View& dc, const View& weight, const View& da);
  // dweight = dc^T a, added to if the gradient has been begun.
  void back_to_weight(Part part, const View& dc, const View& a, const Parameter& weight,
                      bool begun = false);
  void bias_gradient(const View& dc, const Parameter& bias);
  // `kind` is kNorm with one out, or kNormGrad; weight and bias are the part's, if it has any.
  void norm(Part part, const View& x, const View& h);
  void norm_gradient(Part part, const View& dh, const View& x, const View& dx, bool adds);

  // The current layer's parameter, or null.
  [[nodiscard]] const Parameter* find(Part part, bool vector = false, int nth = 0) const;
  [[nodiscard]] View weight(Part part) const;

  Program& program() { return program_; }
  [[nodiscard]] const Program& program() const { return program_; }
  [[nodiscard]] const spec::ModelSpec& model() const { return program_.model; }
  [[nodiscard]] std::string named(const char* what) const;

 private:
  // quantised.cc: what is known of a block's product in fp8.
  struct Quantised {
    View input_scale;
    View weight_scale;
    View gradient_scale;
    View gradient;    // of the result
    View gradient_t;  // and its transpose
  };
  [[nodiscard]] bool in_fp8() const;
  Quantised& quantised(Part part) { return quantised_[{layer_, part}]; }
  View scale(Part part, const View& x);
  View quantise(Part part, const View& x, const View& scale, bool transpose);
  const Quantised& quantise_gradient(Part part, const View& dc);
  void to_fp8_forward(Op& op);
  void to_fp8_back_to_input(Op& op);
  void to_fp8_back_to_weight(Op& op);

  Program& program_;
  Phase phase_ = Phase::kForward;
  std::int32_t layer_ = kNoLayer;
  std::map<std::pair<std::int32_t, Part>, Quantised> quantised_;
};

// The buffers of a block's forward pass, as far as its backward pass needs them.
struct Kept {
  View x;      // what comes in
  View h;      // normalised; not kept: recomputed
  View qkv;    // rotated in place
  View heads;  // normalised queries and keys, with qk_norm; else none
  View o;
  View log_sum_exp;
  View x1;  // after attention
  View h2;
  View inner;  // gate|up
  View a;      // after the activation
};

// block_forward.cc, block_backward.cc: `x` to the block's output; what `policy` keeps.
Kept forward_block(Builder& b, const View& x, const View& out);
// dx is the gradient of the block's output, and of its input afterwards.
void backward_block(Builder& b, Kept kept, const View& dx);
// head.cc: the final norm, the logits and the loss; for training also their gradients, into dx.
void build_head(Builder& b, const View& x, const View* dx);
// ranks.cc: what ranks tell each other after the last micro-batch; nothing where there is one.
void sum_losses(Builder& b);
void sum_gradients(Builder& b);  // each rank has the sums of its own ranges afterwards
// The norm of every rank's own gradients, by rank.
View gather_norms(Builder& b, std::vector<View> own_gradients);
void gather_weights(Builder& b);  // every rank has all of the updated weights afterwards
// optimizer.cc
void build_optimizer(Builder& b);

}  // namespace assay::step
