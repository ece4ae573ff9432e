// Outliner: makes an outline (outline.h). Its methods are in outline.cc (ends, products),
// outline_block.cc and outline_parameters.cc.
#pragma once

#include "step/outline.h"

namespace assay::step {

// Sizes on one rank, after every cut.
struct Sizes {
  Sizes(const spec::ModelSpec& model, const OutlineChoices& choices);

  double tokens = 0;   // of a micro-batch
  double between = 0;  // of these, where sequence parallelism has cut what lies between products
  double keys = 0;     // that attention sees at most
  double dim = 0;
  double q = 0;  // widths
  double kv = 0;
  double inner = 0;  // gate|up, or up
  double ffn = 0;
  double vocab = 0;  // padded
  double layers = 0;
  double micros = 0;
  double activation = 0;  // bytes of an element
  double weight = 0;
  double gradient = 0;
};

class Outliner {
 public:
  Outliner(const spec::ModelSpec& model, const OutlineChoices& choices, Outline& outline)
      : model_(model), choices_(choices), sizes_(model, choices), outline_(outline) {}

  // outline_block.cc: forward, what the backward pass recomputes, and backward, of all blocks.
  void blocks();
  // outline.cc
  void ends();
  // outline_parameters.cc
  void parameters();

 private:
  // How often what is added next is executed in a step, and in which phase.
  void enter(Phase phase, double count) {
    phase_ = phase;
    count_ = count;
  }
  void pass(Kind kind, Part part, double bytes);
  void attention(Kind kind, double passes, double bytes);
  // A product of `rows` activations with a weight of `out` x `in`, in one of its three forms.
  // `also`: bytes besides a, b and c; `writes`: how many parts of a micro-batch add to the weight's
  // gradient.
  enum class Form { kForward, kInput, kWeight };
  void product(Part part, Form form, double rows, double out, double in, double also = 0,
               double writes = 1);
  void collective(Axis axis, CollectiveKind kind, double elements);

  // outline_block.cc
  void norm(Part part);
  void norm_gradient(Part part);
  void make_qkv();
  void attend();
  void attention_out();
  void gate_up();
  void down();
  void mlp_forward();
  void quantise(Part part, Form form, double rows, double out, double in);
  void head();
  void cut_ends();
  void backward_mlp(bool recomputes_norm, bool makes_activation);
  void backward_attention(bool recomputes_norm);
  void cut_sums();
  void cut(CollectiveKind kind);
  void bias_gradient(Part part, double rows, double width);
  void extras(bool forward);
  void blocks_alike(double layers, bool have_last);
  void route(Kind kind);
  // How many rows a product of the MLP has, and how many such products there are.
  struct Mlp {
    double rows = 0;
    double times = 0;
    [[nodiscard]] double tokens() const { return rows * times; }
  };
  [[nodiscard]] Mlp mlp() const;
  [[nodiscard]] double routed_tokens() const;
  // What `task` adds is executed `times` as often.
  template <class Task>
  void each(double times, Task task) {
    count_ *= times;
    task();
    count_ /= times;
  }
  [[nodiscard]] double bias(double width) const { return model_.bias ? width * sizes_.weight : 0; }
  [[nodiscard]] double norm_weights() const;
  // Bytes of a gradient that is written so often per micro-batch: but for the first time it is
  // added to.
  [[nodiscard]] double added(double elements, double writes) const;

  const spec::ModelSpec& model_;
  const OutlineChoices& choices_;
  Sizes sizes_;
  Outline& outline_;
  Phase phase_ = Phase::kForward;
  double count_ = 0;
  bool mixture_ = false;  // the layers that are being written down are mixtures
};

}  // namespace assay::step
