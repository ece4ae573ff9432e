// Builder: makes the ops of a step, for a sink (sink.h): the one description of blocks, head and
// optimizer, for the program that is executed as for the totals that are priced. Its own methods
// are in builder.cc, for fp8 in quantised.cc, and for what ranks exchange in exchange.cc; the
// functions below build the parts of a step with it.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "step/gather_order.h"
#include "step/pipeline.h"
#include "step/program.h"
#include "step/shapes.h"
#include "step/sink.h"

namespace assay::step {

class Builder {
 public:
  // The program has its model, choices and parameters already; of a sink that unrolls, its units.
  Builder(Program& program, Sink& sink);

  // How often what follows is executed in a step, where the sink does not unroll: by so many of the
  // rank's layers, in so many micro-batches.
  struct Stands {
    std::int64_t layers = 1;
    std::int64_t micros = 1;
    bool first_mixture = false;  // the rank's first mixture is among these layers
    bool first_micro = false;    // and the first micro-batch among these
  };
  void stand_for(const Stands& stands) {
    stands_ = stands;
    times_ = stands.layers * stands.micros;
  }
  // What task(0), task(1), … emit differs by places in buffers alone.
  template <class Task>
  void repeat(std::int64_t times, Task task) {
    if (sink_.unrolls()) {
      for (std::int64_t i = 0; i < times; ++i) task(i);
    } else if (times > 0) {
      times_ *= times;
      task(std::int64_t{0});
      times_ /= times;
    }
  }

  // The ops that follow are of this micro-batch, and use the buffers of this slot (pipeline.h).
  void begin_pass(std::int32_t micro, std::int32_t slot);
  // A buffer with one matrix, in the activations' type unless given. Passes get the same buffers
  // again: those with the same name, slot, phase and place among buffers of one name.
  View matrix(std::string name, std::int64_t rows, std::int64_t cols);
  View matrix(std::string name, std::int64_t rows, std::int64_t cols, Dtype type, Storage storage);

  // The ops that follow are of this phase and layer.
  void enter(Phase phase, std::int32_t layer = kNoLayer) {
    phase_ = phase;
    layer_ = layer;
  }
  [[nodiscard]] Phase phase() const { return phase_; }
  [[nodiscard]] std::int32_t layer() const { return layer_; }
  [[nodiscard]] std::int32_t micro() const { return micro_; }
  void emit(Op op);
  // Of attention or its gradients: within the documents of the pass' tokens, if they are set.
  void set_documents(const View& documents) { documents_ = documents; }
  void emit_within_documents(Op op);

  // c = a b^T: activations times a weight, as the forward pass has it. `residual` may be none.
  void forward(Part part, const View& a, const View& weight, const View& c,
               const View* residual = nullptr, const View* bias = nullptr);
  // For c = a b^T: da = dc b, or added to what is there.
  void back_to_input(Part part, const View& dc, const View& weight, const View& da,
                     bool adds = false);
  // dweight = dc^T a, added to if the gradient has been begun. Like the bias' it may be made later:
  // see defer_weight_gradients().
  void back_to_weight(Part part, const View& dc, const View& a, const Parameter& weight,
                      bool begun = false);
  void bias_gradient(const View& dc, const Parameter& bias);
  // `kind` is kNorm with one out, or kNormGrad; weight and bias are the part's, if it has any.
  void norm(Part part, const View& x, const View& h);
  // dx is the norm's gradient alone, or added to what is in `before`, which may be dx itself.
  void norm_gradient(Part part, const View& dh, const View& x, const View* before, const View& dx);

  // Zero-bubble pipelines (pipeline.h). From here to the end of the pass, what makes and finishes
  // gradients of weights is noted, and emitted by make_deferred() in a later pass of the same
  // micro-batch. Whoever overwrites what that reads must not: see in_place_of().
  void defer_weight_gradients() { defers_ = true; }
  void make_deferred();
  // The same within a pass, until make_deferred(); from end_deferring() on nothing more is noted.
  // The pass uses buffers in another order than others, so it has its own from here on.
  void defer_within_pass() { defers_ = is_reordered_ = true; }
  void end_deferring() { defers_ = false; }
  // Emits now, or later.
  void make_weight_gradient(std::function<void()> emit);
  // Where a stream's gradient can be changed: there, or where something will still read it, in
  // another buffer.
  View in_place_of(const View& dx, const char* name);
  // gradient() of a vector that is made together with the gradient of activations, so not later.
  View vector_gradient(const Parameter& p);

  // mixture.cc. Of a forward pass: a kRoute counts beside its results its losses, and the load of
  // each expert.
  void emit_counting(Op op);

  // The current layer's parameter, or null.
  [[nodiscard]] const Parameter* find(Part part, bool vector = false, int nth = 0) const;
  [[nodiscard]] View weight(Part part) const;
  // Where the weight can be read now, and where this micro-batch's gradient is written.
  [[nodiscard]] View weight(const Parameter& p) const;
  View gradient(const Parameter& p, bool head = false);

  // tensor.cc. Tokens whose residual stream this rank has, of a micro-batch's.
  [[nodiscard]] std::int64_t stream_rows() const;
  // What the ranks have of all tokens, where each has it of its own.
  View all_tokens(Part part, const char* name, const View& own);
  // Products whose results are in the stream: c = a weight^T + residual + bias, da = dc weight.
  // With tensor parallelism each rank makes an addend, of all tokens.
  void forward_into_stream(Part part, const char* name, const View& a, const View& c,
                           const View& residual, const View* bias);
  void back_into_stream(Part part, const char* name, const View& dc, const View& weight,
                        const View& da);
  // Where this rank's addend to `sum` is made: in `sum` itself if it is alone.
  View addend(const char* name, const View& sum);
  // sum = everyone's addends + residual + bias; nothing if the rank is alone.
  void add_up(Part part, const View& addend, const View& sum, const View* residual,
              const View* bias);

  // exchange.cc. Where ranks gather weights: in which order this micro-batch uses units; and that
  // the next one in that order is used now, so the one after it can be gathered meanwhile.
  void plan_uses(const std::vector<std::int32_t>& units);
  void use(std::int32_t unit);
  // All uses have been planned: what is used first is there when the step begins, because the
  // optimizer gathers it for the next one, unit by unit, and waits at its end.
  void begin_with_gathered();
  [[nodiscard]] bool is_gathered_first(std::int32_t unit) const;
  void gather_for_next_step(std::int32_t unit);
  void finish_gathers_for_next_step();
  // The gradients of a unit are complete: they are added to those of the micro-batches and ranks
  // before. `head`: what the head adds to a table that is used for both.
  void finish_gradients(std::int32_t unit, bool head = false);
  void finish_exchanges();  // of gradients that are still on their way
  // Where the sink does not unroll: what all passes gather, and what all micro-batches exchange and
  // add up of gradients.
  void count_gathers(const std::vector<Pass>& passes);
  void count_gradients(std::int64_t micros);
  [[nodiscard]] bool is_on_its_way(std::int32_t unit) const;
  // An exchange, and its end. What the caller gets is what it waits for.
  Op issue(Op op);
  Op wait(const Op& issued);
  // A row of elements that is the same buffer wherever it is named.
  View shared(const std::string& name, std::int64_t elements, Dtype type, Storage storage);
  // The scales of fp8 that the layer's earlier passes in this slot found.
  void forget_scales() {
    std::erase_if(quantised_, [&](const auto& known) {
      return std::get<0>(known.first) == slot_ && std::get<1>(known.first) == layer_;
    });
  }

  Program& program() { return program_; }
  [[nodiscard]] const Program& program() const { return program_; }
  [[nodiscard]] const spec::ModelSpec& model() const { return program_.model; }
  [[nodiscard]] const BlockShape& shape() const { return shape_; }
  [[nodiscard]] bool shares_sequences() const { return program_.choices.layout.context.ranks > 1; }
  [[nodiscard]] std::string named(const char* what) const;

  // quantised.cc: whether the layer's products are made in fp8, and what changes about them then:
  // their operands are converted.
  [[nodiscard]] bool in_fp8() const;
  void to_fp8_forward(Op& op);
  void to_fp8_back_to_input(Op& op);
  void to_fp8_back_to_weight(Op& op);

 private:
  // quantised.cc: the fp8 operands of a block's product.
  struct Quantised {
    View input_scale;
    View weight_scale;
    View gradient_scale;
    View gradient;    // of the result
    View gradient_t;  // and its transpose
  };
  Quantised& quantised(Part part) { return quantised_[{slot_, layer_, part}]; }
  View scale(const Op& product, const View& x, bool by_row);
  View quantise(const Op& product, const View& x, const View& scale);
  View quantise_turned(const Op& product, const View& x, const View& scale, bool by_row);
  const Quantised& quantise_gradient(const Op& product);

  // mixture.cc: which of the model's mixtures a layer is.
  [[nodiscard]] std::int64_t mixture_of_layer(std::int32_t layer) const;

  // The op is of the current phase, layer and micro-batch.
  void place(Op& op) const;

  // exchange.cc
  [[nodiscard]] bool gathers() const;
  struct Pending {  // gradients on their way
    Op issued;
    bool head = false;
  };
  [[nodiscard]] const Unit& unit(std::int32_t index) const {
    return program_.units[static_cast<std::size_t>(index)];
  }
  [[nodiscard]] std::string place_of(std::int32_t unit, const char* what) const;
  [[nodiscard]] std::int64_t room_of(std::int32_t unit) const;
  [[nodiscard]] std::int64_t received_room_of(std::int32_t unit) const;
  void measure_places();
  [[nodiscard]] std::string gathered_place(std::int32_t unit) const;
  View gathered(std::int32_t unit);
  Op issue_gather(const GatherOrder::Use& use);
  View own_gradients(std::int32_t unit, bool head);
  View gradient_place(std::int32_t unit, bool head);
  [[nodiscard]] bool writes_directly(std::int32_t unit) const;
  // That have the unit's parameters, and make a part of their gradients each.
  [[nodiscard]] std::int64_t data_ranks(std::int32_t unit) const;
  void exchange_gradients(std::int32_t unit, bool head);
  void fold(const View& addends, std::int32_t unit, bool head);
  void finish_oldest();

  Program& program_;
  Sink& sink_;
  BlockShape shape_;
  Stands stands_;
  std::int64_t times_ = 1;
  BufferId weights_ = -1;  // of all units, where the sink does not unroll
  BufferId gradients_ = -1;
  Phase phase_ = Phase::kForward;
  std::int32_t layer_ = kNoLayer;
  std::int32_t micro_ = 0;
  std::int32_t tickets_ = 0;
  std::int32_t slot_ = 0;
  View documents_;  // none: attention crosses them
  // Elements of the largest unit of a block, and of the largest part that this rank adds up; of
  // experts, where they are units of their own, at 1.
  std::int64_t block_room_[2] = {};
  std::int64_t block_part_[2] = {};
  std::map<std::tuple<std::int32_t, std::int32_t, Part>, Quantised> quantised_;  // slot, layer
  std::map<std::tuple<std::string, std::int32_t, Phase, int>, View> known_;      // name, slot
  std::map<std::pair<std::string, Phase>, int> named_;                           // in this pass
  std::map<std::string, View> shared_;
  GatherOrder gather_order_;
  std::map<std::int32_t, Op> gathering_;  // by unit: issued and not waited for
  std::deque<Pending> pending_;
  struct Deferred {
    std::vector<std::function<void()>> ops;
    std::map<std::pair<std::string, Phase>, int> named;  // the pass goes on where it stopped
  };
  std::set<std::int32_t> begun_sums_;   // micro-batches whose routers' losses have been begun
  std::set<std::int32_t> begun_loads_;  // and layers whose loads
  bool defers_ = false;
  bool is_reordered_ = false;
  std::map<std::int32_t, Deferred> deferred_;  // by micro-batch
};

// Which experts the tokens of a mixture go to.
struct Routed {
  View logits;
  View weights;  // of each token's experts
  View experts;
  View counts;      // of slots, by expert
  View rows;        // of slots
  View slots;       // of rows
  View first_rows;  // of experts, and the end; of this rank's
  // What the activation multiplies with, and where each row's is there: the router's weights and
  // slots, or where ranks have different experts, what arrived (expert_exchange.h).
  View row_weights;
  View row_sources;
  // Where ranks have different experts only: counts of rows, and the places of those that arrived.
  View sent;
  View received;
  View places;
};

// The buffers of a block's forward pass, as far as its backward pass needs them.
struct Kept {
  View x;      // what comes in
  View h;      // normalised; not kept: recomputed
  View qkv;    // rotated in place
  View heads;  // normalised queries and keys, with qk_norm; else none
  View o;
  View log_sum_exp;
  View keys_values;  // of whole sequences, where ranks share them; not kept: gathered again
  Op sharing;        // what gathers these, if it has been issued and not waited for
  View x1;           // after attention
  View h2;
  View inner;  // gate|up
  View a;      // after the activation
  Routed routed;
  View expert_input;  // rows of h2 in the order of experts, if they had to be made again
  View shared_inner;  // of the expert that every token uses
  View shared_a;
  View sum;  // the addend to the stream, once it has been begun
};

// block.cc: from `x` to the block's output. Everything is kept; the backward pass drops what the
// recompute policy does not keep (recompute.h).
Kept forward_block(Builder& b, const View& x, const View& out);
// From the gradient of the block's output to that of its input: in the same place, unless gradients
// of weights are deferred.
View backward_block(Builder& b, Kept kept, const View& dx);
void make_mlp_norm(Builder& b, Kept& k);
// mixture.cc: the parts of a block's MLP where that is a mixture. Experts are chosen once, unless
// attention is computed again. `out`: of the block; null if its inside is computed again.
void forward_mixture(Builder& b, Kept& k, const View* out);
void activate_mixture(Builder& b, Kept& k);
void mixture_into_stream(Builder& b, Kept& k, const View& out);
View backward_mixture(Builder& b, Kept& k, const View& dx);
// Queries and keys, side by side, as attention reads them; values are after these in k.qkv.
View query_key(const Kept& k, const BlockShape& s);
// context.cc: attention of ranks that share sequences. The exchange of keys and values, as early as
// it can be issued; their gradients come back while the caller computes something else.
void share_keys(Builder& b, Kept& k);
void attend_in_context(Builder& b, Kept& k);
Op attention_gradients_in_context(Builder& b, Kept& k, const View& d_o, const View& dq);
void add_key_gradients(Builder& b, const Op& exchange, const View& dkv);
// The units whose weights the current layer uses in that pass, in order.
std::vector<std::int32_t> units_used(const Builder& b, Phase phase);
// head.cc: the final norm, the logits and the loss; for training also their gradients, into dx.
void build_head(Builder& b, const View& x, const View& targets, const View* dx);
std::vector<std::int32_t> units_of_head(const Builder& b);
// embedding.cc: before the first block of a chunk. Tokens are read where they are embedded, targets
// where the loss is, and where documents begin by every chunk, if attention stays within them.
struct Inputs {
  View tokens;
  View targets;
  View documents;
};
struct InputPlace {
  std::int32_t chunk = 0;
  std::int32_t slot = 0;
  bool first = false;  // the chunk is the model's first
  bool last = false;
};
Inputs read_inputs(Builder& b, const InputPlace& place);
void embed(Builder& b, const View& tokens, const View& x);
void back_to_tables(Builder& b, const View& tokens, const View& dx);
std::vector<std::int32_t> units_of_tables(const Builder& b);
// passes.cc: what a rank does with its micro-batches; and of it, what totals need as well: the
// stream sent to a stage, or received from one, and the units that a pass uses, in order.
void build_passes(Builder& b);
Op send_stream(Builder& b, Pass::Direction direction, const View& x);
Op receive_stream(Builder& b, Pass::Direction direction, const View& x);
std::vector<std::int32_t> units_of_pass(Builder& b, const Pass& pass);
// program.cc: what there is before the first op: parameters, units and their buffers, given the
// model and the choices; and what is counted.
void add_state(Program& program, Sink& sink);
void add_scalars(Builder& b);
// optimizer.cc: after the last micro-batch, the step's losses from those of all micro-batches, and
// the updates.
void add_losses(Builder& b);
void build_optimizer(Builder& b);

}  // namespace assay::step
