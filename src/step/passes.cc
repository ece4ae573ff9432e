// The passes of a rank's micro-batches: read and embed, or receive from the stage before; the
// chunk's blocks; the head and the loss, or send to the next stage; and back.
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>

#include "step/builder.h"
#include "step/pipeline.h"

namespace assay::step {
namespace {

class Passes {
 public:
  explicit Passes(Builder& b)
      : b_(b),
        p_(b.program()),
        layout_(p_.choices.layout),
        train_(p_.choices.purpose == Purpose::kTrain),
        tokens_(p_.micro_tokens()),
        stream_rows_(b.stream_rows()),
        dim_(p_.model.dim) {}

  void build() {
    micros_ = p_.choices.purpose == Purpose::kLogits ? 1 : p_.choices.accumulate;
    const std::vector<Pass> passes = passes_of(layout_, micros_, train_);
    for (const Pass& pass : passes) {
      slots_[pass.chunk] = std::max(slots_[pass.chunk], pass.slot + 1);
      plan_uses(pass);
    }
    if (train_) b_.begin_with_gathered();
    for (std::size_t i = 0; i < passes.size(); ++i) {
      // The stage before works on the next one meanwhile.
      receive(passes[i]);
      std::size_t next = i + 1;
      while (next < passes.size() && passes[next].direction == Pass::Direction::kWeights) ++next;
      if (next < passes.size()) receive(passes[next]);
      const std::int32_t last_sent = sends_.empty() ? -1 : sends_.back().ticket;
      switch (passes[i].direction) {
        case Pass::Direction::kForward:
          forward(passes[i]);
          break;
        case Pass::Direction::kBackward:
          backward(passes[i]);
          break;
        case Pass::Direction::kWeights:
          enter(passes[i]);
          b_.make_deferred();
          break;
      }
      while (!sends_.empty() && sends_.front().ticket <= last_sent) finish_send();
    }
    while (!sends_.empty()) finish_send();
  }

 private:
  // What a pass leaves for the way back.
  struct Chunk {
    std::vector<Kept> kept;
  };

  [[nodiscard]] std::int64_t place(const Pass& pass) const {
    return pass.chunk * layout_.pipeline.ranks + layout_.pipeline.rank;
  }
  [[nodiscard]] std::int64_t places() const { return layout_.chunks * layout_.pipeline.ranks; }
  [[nodiscard]] bool is_first(const Pass& pass) const { return place(pass) == 0; }
  [[nodiscard]] bool is_last(const Pass& pass) const { return place(pass) == places() - 1; }
  [[nodiscard]] Layers layers(const Pass& pass) const {
    return layers_of_chunk(p_.model.layers, place(pass), places());
  }
  [[nodiscard]] std::int32_t stage(std::int64_t by) const {
    const Place& stages = layout_.pipeline;
    return static_cast<std::int32_t>((stages.rank + by + stages.ranks) % stages.ranks);
  }
  static Axis axis_of(const Pass& pass) {
    return pass.direction == Pass::Direction::kForward ? Axis::kPipeline : Axis::kPipelineBack;
  }
  [[nodiscard]] bool needs_input(const Pass& pass) const {
    if (pass.direction == Pass::Direction::kWeights) return false;
    return pass.direction == Pass::Direction::kForward ? !is_first(pass) : !is_last(pass);
  }

  View stream(const char* what, const Pass& pass, std::int32_t number) {
    const View row =
        b_.shared(fmt::format("{} chunk {}, {}", what, pass.chunk, number), stream_rows_ * dim_,
                  p_.choices.numerics.activations, Storage::kActivations);
    return {row.buffer, 0, stream_rows_, dim_, dim_};
  }
  // One more than slots, so that the next one can be received before a slot is free.
  View in_of(const Pass& pass) {
    return stream("stream into", pass, pass.micro % (slots_[pass.chunk] + 1));
  }
  View gradient_of(const Pass& pass) { return stream("gradient of", pass, pass.slot); }

  void enter(const Pass& pass) {
    const bool forward = pass.direction == Pass::Direction::kForward;
    b_.enter(forward ? Phase::kForward : Phase::kBackward);
    b_.begin_pass(pass.micro, pass.slot);
  }

  // What stages send to each other is named after the layer before which it is, on both sides.
  void at_border(const Pass& pass, std::int32_t layer) {
    const bool forward = pass.direction == Pass::Direction::kForward;
    b_.enter(forward ? Phase::kForward : Phase::kBackward, layer);
  }

  void receive(const Pass& pass) {
    const std::pair key{pass.direction, std::pair{pass.chunk, pass.micro}};
    if (!needs_input(pass) || receives_.contains(key)) return;
    enter(pass);
    const bool forward = pass.direction == Pass::Direction::kForward;
    at_border(pass, forward ? layers(pass).first : layers(pass).end);
    const View to = forward ? in_of(pass) : gradient_of(pass);
    finish_sends_from(to);
    receives_[key] = b_.issue({.kind = Kind::kReceive,
                               .part = Part::kAllGroups,
                               .out = {to},
                               .axis = axis_of(pass),
                               .peer = stage(forward ? -1 : 1)});
  }
  void wait_for_input(const Pass& pass) {
    const auto found = receives_.find({pass.direction, {pass.chunk, pass.micro}});
    if (found == receives_.end()) return;
    b_.wait(found->second);
    found->second = {};  // stays known as received
  }

  void send(const Pass& pass, const View& x) {
    const bool forward = pass.direction == Pass::Direction::kForward;
    at_border(pass, forward ? layers(pass).end : layers(pass).first);
    sends_.push_back(b_.issue({.kind = Kind::kSend,
                               .part = Part::kAllGroups,
                               .in = {x},
                               .axis = axis_of(pass),
                               .peer = stage(forward ? 1 : -1)}));
  }
  void finish_send() {
    b_.wait(sends_.front());
    sends_.pop_front();
  }
  void finish_sends_from(const View& x) {
    while (std::any_of(sends_.begin(), sends_.end(),
                       [&](const Op& op) { return op.in[0].buffer == x.buffer; })) {
      finish_send();
    }
  }

  // They had the time of a block to travel. Kept on their way, the tables' would be there beside
  // the logits, where memory is needed most.
  void finish_gradients_of_earlier() {
    const std::int32_t layer = b_.layer();
    b_.enter(Phase::kBackward);
    b_.finish_exchanges();
    b_.enter(Phase::kForward, layer);
  }

  // Tokens where they are embedded, targets where the loss is.
  void read(const Pass& pass) {
    const std::string name = fmt::format("slot {}", pass.slot);
    const auto integers = [&](const char* what) {
      View view =
          b_.shared(fmt::format("{}, {}", what, name), tokens_, Dtype::kI32, Storage::kInputs);
      return View{view.buffer, 0, tokens_, 1, 1};
    };
    Op op{.kind = Kind::kRead, .part = is_first(pass) ? Part::kEmbedding : Part::kLoss};
    if (is_first(pass)) op.out.push_back(token_views_[pass.slot] = integers("tokens"));
    if (is_last(pass) && p_.choices.purpose != Purpose::kLogits) {
      op.out.push_back(targets_ = integers("targets"));
    }
    if (!op.out.empty()) b_.emit(std::move(op));
  }

  // Of this rank's part of the table.
  [[nodiscard]] std::int64_t first_token() const {
    const Parameter& table = *b_.find(Part::kEmbedding);
    return layout_.tensor.rank * (table.rows + table.padding_rows);
  }

  void embed(const Pass& pass, const View& x) {
    const Parameter* positions = b_.find(Part::kPositions);
    b_.use(b_.find(Part::kEmbedding)->unit);
    if (positions != nullptr) b_.use(positions->unit);
    const View addend = b_.addend("embedding addend", x);
    Op op{.kind = Kind::kEmbed,
          .part = Part::kEmbedding,
          .in = {token_views_[pass.slot], b_.weight(Part::kEmbedding)},
          .out = {addend},
          .first_token = first_token()};
    // Of tensor-parallel ranks, one adds the positions.
    if (positions != nullptr && layout_.tensor.rank == 0) op.in.push_back(b_.weight(*positions));
    b_.emit(std::move(op));
    b_.add_up(Part::kEmbedding, addend, x, nullptr, nullptr);
  }

  void forward(const Pass& pass) {
    enter(pass);
    Chunk& chunk = chunks_[{pass.chunk, pass.slot}];
    chunk = {};
    if (is_first(pass) || is_last(pass)) read(pass);
    View x = in_of(pass);
    if (is_first(pass)) {
      embed(pass, x);
    } else {
      wait_for_input(pass);
    }
    const Layers range = layers(pass);
    for (std::int32_t layer = range.first; layer < range.end; ++layer) {
      b_.enter(Phase::kForward, layer);
      b_.forget_scales();
      const View out = b_.matrix(b_.named("out"), stream_rows_, dim_);
      if (layer + 1 == range.end) finish_sends_from(out);
      chunk.kept.push_back(forward_block(b_, x, out));
      x = out;
      if (layer == range.first) finish_gradients_of_earlier();
    }
    b_.enter(Phase::kForward);
    if (!is_last(pass)) return send(pass, x);
    if (!train_) return build_head(b_, x, targets_, nullptr);
    const View dx = gradient_of(pass);
    finish_sends_from(dx);
    build_head(b_, x, targets_, &dx);
  }

  void backward(const Pass& pass) {
    enter(pass);
    if (defers_weight_gradients(layout_)) b_.defer_weight_gradients();
    Chunk& chunk = chunks_[{pass.chunk, pass.slot}];
    View dx = gradient_of(pass);
    wait_for_input(pass);
    const Layers range = layers(pass);
    for (std::int32_t layer = range.end - 1; layer >= range.first; --layer) {
      b_.enter(Phase::kBackward, layer);
      if (layer == range.first && is_last_of_step(pass)) b_.defer_within_pass();
      dx = backward_block(b_, chunk.kept[static_cast<std::size_t>(layer - range.first)], dx);
    }
    b_.enter(Phase::kBackward);
    if (!is_first(pass)) return send(pass, dx);
    const View tokens = token_views_[pass.slot];
    if (is_last_of_step(pass)) {
      b_.end_deferring();
      back_to_tables(tokens, dx);
      return b_.make_deferred();
    }
    b_.make_weight_gradient([this, tokens, dx] { back_to_tables(tokens, dx); });
  }

  // No pass comes after it that the gradients of tables, the largest there are, could travel
  // behind. So they are made before the gradients of the first block's weights; unless keys travel
  // behind those (context.cc).
  [[nodiscard]] bool is_last_of_step(const Pass& pass) const {
    return is_first(pass) && pass.micro + 1 == micros_ && layout_.data().ranks > 1 &&
           !b_.shares_sequences() && !defers_weight_gradients(layout_);
  }

  void back_to_tables(const View& tokens, const View& dx) {
    const Parameter& table = *b_.find(Part::kEmbedding);
    const View of_all = b_.all_tokens(Part::kEmbedding, "gradient of all", dx);
    b_.emit({.kind = Kind::kEmbedGrad,
             .part = Part::kEmbedding,
             .in = {tokens, of_all},
             .out = {b_.gradient(table)},
             .first_token = first_token()});
    b_.finish_gradients(table.unit);
    if (const Parameter* positions = b_.find(Part::kPositions)) {
      b_.emit({.kind = Kind::kPositionsGrad,
               .part = Part::kPositions,
               .in = {of_all},
               .out = {b_.gradient(*positions)}});
      b_.finish_gradients(positions->unit);
    }
  }

  // The order in which passes use weights that must be gathered first.
  void plan_uses(const Pass& pass) {
    if (pass.direction == Pass::Direction::kWeights) return;
    enter(pass);
    const bool forward = pass.direction == Pass::Direction::kForward;
    if (forward && is_first(pass)) {
      b_.plan_uses({b_.find(Part::kEmbedding)->unit});
      if (const Parameter* positions = b_.find(Part::kPositions)) b_.plan_uses({positions->unit});
    }
    const Layers range = layers(pass);
    for (std::int32_t i = range.first; i < range.end; ++i) {
      const std::int32_t layer = forward ? i : range.first + range.end - 1 - i;
      b_.enter(forward ? Phase::kForward : Phase::kBackward, layer);
      b_.plan_uses(units_used(b_, forward ? Phase::kForward : Phase::kBackward));
    }
    b_.enter(Phase::kForward);
    if (forward && is_last(pass)) b_.plan_uses(units_of_head(b_));
  }

  Builder& b_;
  Program& p_;
  const Layout& layout_;
  bool train_;
  std::int64_t tokens_;
  std::int64_t stream_rows_;
  std::int64_t dim_;
  std::int64_t micros_ = 1;
  View targets_;
  std::map<std::int32_t, std::int32_t> slots_;                     // by chunk: how many there are
  std::map<std::int32_t, View> token_views_;                       // by slot
  std::map<std::pair<std::int32_t, std::int32_t>, Chunk> chunks_;  // by chunk and slot
  std::map<std::pair<Pass::Direction, std::pair<std::int32_t, std::int32_t>>, Op> receives_;
  std::deque<Op> sends_;
};

}  // namespace

void build_passes(Builder& b) {
  Passes(b).build();
}

}  // namespace assay::step
