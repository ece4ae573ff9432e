// Builder: emits the ops of a step into a sink (sink.h). It is the only description of blocks, head
// and optimizer, used both for the program that is executed and for the totals that are priced. Its
// methods are in builder.cc, those for fp8 in builder_quantised.cc, for communication in
// builder_exchange.cc and builder_tensor.cc. block.h, head.h, embedding.h, passes.h and optimizer.h
// build the parts of a step with it.
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

namespace testing {
class ExchangeTotals;
}

class Builder {
 public:
  // The program has its model, choices and parameters already and, if the sink unrolls, its units.
  Builder(Program& program, Sink& sink);

  // For sinks that do not unroll: how often the following ops are executed in a step, namely for
  // `layers` of the rank's layers in `micros` micro-batches.
  struct RepeatCounts {
    std::int64_t layers = 1;
    std::int64_t micros = 1;
    bool first_mixture = false;  // these layers include the rank's first mixture
    bool first_micro = false;    // these micro-batches include the first
  };
  void set_repeats(const RepeatCounts& repeats) {
    repeats_ = repeats;
    times_ = repeats.layers * repeats.micros;
  }
  // task(0), task(1), … must emit the same ops except for offsets in buffers.
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

  // The following ops belong to this micro-batch and use the buffers of this slot (pipeline.h).
  void begin_pass(std::int32_t micro, std::int32_t slot);
  // A buffer with one matrix, of the activations' type unless given. A later pass gets the same
  // buffer as an earlier one if name, slot, phase and index among the buffers of that name are
  // equal.
  View matrix(std::string name, std::int64_t rows, std::int64_t cols);
  View matrix(std::string name, std::int64_t rows, std::int64_t cols, Dtype type, Storage storage);

  // The following ops belong to this phase and layer.
  void enter(Phase phase, std::int32_t layer = kNoLayer) {
    phase_ = phase;
    layer_ = layer;
  }
  [[nodiscard]] Phase phase() const { return phase_; }
  [[nodiscard]] std::int32_t layer() const { return layer_; }
  [[nodiscard]] std::int32_t micro() const { return micro_; }
  void emit(Op op);
  // For attention and its gradients: restricts them to documents, if set for this pass.
  void set_documents(const View& documents) { documents_ = documents; }
  void emit_within_documents(Op op);

  // c = a b^T: activations times a weight, as in the forward pass. `residual` and `bias` may be
  // null.
  void forward(ModelPart part, const View& a, const View& weight, const View& c,
               const View* residual = nullptr, const View* bias = nullptr);
  // For c = a b^T: da = dc b, or da += dc b if `adds`.
  void input_gradient(ModelPart part, const View& dc, const View& weight, const View& da,
                      bool adds = false);
  // dweight = dc^T a, added to the gradient if `begun`. May be emitted later, as may
  // bias_gradient(): see defer_weight_gradients().
  void weight_gradient(ModelPart part, const View& dc, const View& a, const Parameter& weight,
                       bool begun = false);
  void bias_gradient(const View& dc, const Parameter& bias);
  // kNorm, with the part's weight and bias if it has any.
  void norm(ModelPart part, const View& x, const View& h);
  // dx = the norm's gradient, plus `before` unless that is null; `before` may be dx itself.
  void norm_gradient(ModelPart part, const View& dh, const View& x, const View* before,
                     const View& dx);

  // Zero-bubble pipelines (pipeline.h). Until the end of the pass, ops that compute and finish
  // gradients of weights are recorded, and make_deferred() emits them in a later pass of the same
  // micro-batch. Their operands must not be overwritten in between: see in_place_of().
  void defer_weight_gradients() { defers_ = true; }
  void make_deferred();
  // The same within one pass, until make_deferred(); from end_deferring() on nothing more is
  // recorded. Such a pass uses buffers in a different order than others, so it gets its own from
  // here on.
  void defer_within_pass() { defers_ = is_reordered_ = true; }
  void end_deferring() { defers_ = false; }
  // Emits now or, if deferring, later.
  void make_weight_gradient(std::function<void()> emit);
  // Where the gradient `dx` of the residual stream may be overwritten: in place or, if a deferred
  // op still reads it, in another buffer.
  View in_place_of(const View& dx, const char* name);
  // gradient() of a vector that is computed together with the gradient of activations, so never
  // deferred.
  View vector_gradient(const Parameter& p);

  // mixture.cc. For a kRoute of a forward pass: adds outputs for its losses and the load of each
  // expert.
  void emit_counting(Op op);

  // The current layer's parameter, or null.
  [[nodiscard]] const Parameter* find(ModelPart part, bool vector = false, int nth = 0) const;
  [[nodiscard]] View weight(ModelPart part) const;
  // Where the weight can currently be read, and where this micro-batch's gradient is written.
  [[nodiscard]] View weight(const Parameter& p) const;
  View gradient(const Parameter& p, bool head = false);

  // builder_tensor.cc. Number of a micro-batch's tokens whose residual stream this rank has.
  [[nodiscard]] std::int64_t stream_rows() const;
  // Gathers all tokens' rows, if tensor-parallel ranks have different tokens.
  View all_tokens(ModelPart part, const char* name, const View& own);
  // Products whose results go into the residual stream: c = a weight^T + residual + bias, da = dc
  // weight. With tensor parallelism each rank computes an addend for all tokens.
  void forward_into_stream(ModelPart part, const char* name, const View& a, const View& c,
                           const View& residual, const View* bias);
  void gradient_into_stream(ModelPart part, const char* name, const View& dc, const View& weight,
                            const View& da);
  // Where this rank's addend to `sum` is written: `sum` itself without tensor parallelism.
  View addend(const char* name, const View& sum);
  // sum = the addends of all ranks + residual + bias; nothing without tensor parallelism.
  void add_up(ModelPart part, const View& addend, const View& sum, const View* residual,
              const View* bias);

  // builder_exchange.cc. If ranks gather weights (ZeRO 3): plan_uses() gives the order in which
  // this micro-batch uses units; use() marks the next unit as used now, so that the one after it
  // can be gathered meanwhile.
  void plan_uses(const std::vector<std::int32_t>& units);
  void use(std::int32_t unit);
  // Call when all uses have been planned: the units used first are already present when a step
  // begins, because the optimizer of the previous step gathers them, unit by unit, and waits at its
  // end.
  void begin_with_gathered();
  [[nodiscard]] bool is_gathered_first(std::int32_t unit) const;
  void gather_for_next_step(std::int32_t unit);
  void finish_gathers_for_next_step();
  // The gradients of a unit are complete for this micro-batch: adds them to those of earlier
  // micro-batches and other ranks. `head`: the head's contribution to a table that is also the
  // embedding.
  void finish_gradients(std::int32_t unit, bool head = false);
  void finish_exchanges();  // waits for gradients still in flight
  [[nodiscard]] bool is_in_flight(std::int32_t unit) const;
  // Starts an exchange, and waits for it. wait() takes the op that issue() returned.
  Op issue(Op op);
  Op wait(const Op& issued);
  // A row of elements; the same name always gives the same buffer.
  View shared(const std::string& name, std::int64_t elements, Dtype type, Storage storage);
  // Discards the fp8 scales that earlier passes of this layer found in this slot.
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

  // builder_quantised.cc: whether the layer's products are computed in fp8; to_fp8_…() add the
  // conversion of their operands.
  [[nodiscard]] bool in_fp8() const;
  void to_fp8_forward(Op& op);
  void to_fp8_input_gradient(Op& op);
  void to_fp8_weight_gradient(Op& op);

 private:
  // Emits what sinks that do not unroll are not given otherwise: a step's exchange of parameters.
  friend class testing::ExchangeTotals;

  // builder_quantised.cc: the fp8 operands of a block's product.
  struct Quantised {
    View input_scale;
    View weight_scale;
    View gradient_scale;
    View gradient;    // with respect to the result
    View gradient_t;  // its transpose
  };
  Quantised& quantised(ModelPart part) { return quantised_[{slot_, layer_, part}]; }
  View scale(const Op& product, const View& x, bool by_row);
  View quantise(const Op& product, const View& x, const View& scale);
  View quantise_transposed(const Op& product, const View& x, const View& scale, bool by_row);
  const Quantised& quantise_gradient(const Op& product);

  // mixture.cc: the index of a layer among the model's mixtures.
  [[nodiscard]] std::int64_t mixture_of_layer(std::int32_t layer) const;

  // Sets the op's phase, layer and micro-batch to the current ones.
  void place(Op& op) const;

  // builder_exchange.cc
  [[nodiscard]] bool gathers() const;
  struct Pending {  // gradients in flight
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
  // Number of ranks that have the unit's parameters and each compute a part of their gradients.
  [[nodiscard]] std::int64_t data_ranks(std::int32_t unit) const;
  void exchange_gradients(std::int32_t unit, bool head);
  void fold(const View& addends, std::int32_t unit, bool head);
  void finish_oldest();

  Program& program_;
  Sink& sink_;
  BlockShape shape_;
  RepeatCounts repeats_;
  std::int64_t times_ = 1;
  BufferId weights_ = -1;  // for all units, if the sink does not unroll
  BufferId gradients_ = -1;
  Phase phase_ = Phase::kForward;
  std::int32_t layer_ = kNoLayer;
  std::int32_t micro_ = 0;
  std::int32_t tickets_ = 0;
  std::int32_t slot_ = 0;
  View documents_;  // none: attention crosses documents
  // Elements of the largest unit of a block, and of the largest part that this rank sums; index 1
  // is for experts, if they are separate units.
  std::int64_t block_room_[2] = {};
  std::int64_t block_part_[2] = {};
  std::map<std::tuple<std::int32_t, std::int32_t, ModelPart>, Quantised> quantised_;  // slot, layer
  std::map<std::tuple<std::string, std::int32_t, Phase, int>, View> known_;           // name, slot
  std::map<std::pair<std::string, Phase>, int> named_;  // counts in this pass
  std::map<std::string, View> shared_;
  GatherOrder gather_order_;
  std::map<std::int32_t, Op> gathering_;  // by unit: issued, not waited for
  std::deque<Pending> pending_;
  struct Deferred {
    std::vector<std::function<void()>> ops;
    std::map<std::pair<std::string, Phase>, int> named;  // counters of the pass, to continue from
  };
  std::set<std::int32_t> begun_sums_;   // micro-batches whose router losses have been started
  std::set<std::int32_t> begun_loads_;  // layers whose loads have been started
  bool defers_ = false;
  bool is_reordered_ = false;
  std::map<std::int32_t, Deferred> deferred_;  // by micro-batch
};

// program.cc: everything that exists before the first op, given model and choices: parameters,
// units and their buffers, and the step's scalars.
void add_state(Program& program, Sink& sink);
void add_scalars(Builder& b);

}  // namespace assay::step
