// Builder: makes a program's ops (program.h). Its own methods are in builder.cc and, for fp8,
// quantised.cc; the functions below build the parts of a step with it.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "step/program.h"
#include "step/shapes.h"

namespace assay::step {

class Builder {
 public:
  // The program has its model already.
  explicit Builder(Program& program) : program_(program), shape_(block_shape(program.model)) {}

  // A new buffer with one matrix, in the activations' type unless given.
  View matrix(std::string name, std::int64_t rows, std::int64_t cols);
  View matrix(std::string name, std::int64_t rows, std::int64_t cols, Dtype type, Storage storage);

  // The ops that follow are of this phase and layer.
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
  [[nodiscard]] const BlockShape& shape() const { return shape_; }
  [[nodiscard]] std::string named(const char* what) const;

 private:
  // quantised.cc: the fp8 operands of a block's product.
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
  BlockShape shape_;
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

// block.cc: from `x` to the block's output. Everything is kept; the backward pass drops what the
// recompute policy does not keep (recompute.h).
Kept forward_block(Builder& b, const View& x, const View& out);
// dx is the gradient of the block's output, and of its input afterwards.
void backward_block(Builder& b, Kept kept, const View& dx);
// head.cc: the final norm, the logits and the loss; for training also their gradients, into dx.
void build_head(Builder& b, const View& x, const View* dx);
// ranks.cc: collectives after the last micro-batch; none where there is one rank.
void sum_losses(Builder& b);
void sum_gradients(Builder& b);  // each rank has the sums of its own ranges afterwards
// The norm of every rank's own gradients, by rank.
View gather_norms(Builder& b, std::vector<View> own_gradients);
void gather_weights(Builder& b);  // every rank has all of the updated weights afterwards
// optimizer.cc
void build_optimizer(Builder& b);

}  // namespace assay::step
