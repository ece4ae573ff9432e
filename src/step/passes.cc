// The passes of a rank's micro-batches, one by one: read and embed, or receive from the previous
// stage; the chunk's blocks; the head and the loss, or send to the next stage; and backward.
// totals.cc has the same parts with the number of times each is executed.
#include "step/passes.h"
#include "step/block.h"
#include "step/embedding.h"
#include "step/head.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>

namespace assay::step {
namespace {

std::int32_t stage_beside(const Builder& b, std::int64_t by) {
  const AxisPosition& stages = b.program().choices.layout.pipeline;
  return static_cast<std::int32_t>((stages.rank + by + stages.ranks) % stages.ranks);
}

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
      enter(pass);
      b_.plan_uses(units_of_pass(b_, pass));
    }
    if (train_) b_.begin_with_gathered();
    for (std::size_t i = 0; i < passes.size(); ++i) {
      // The previous stage works on the next one meanwhile.
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
  [[nodiscard]] Chunk chunk(const Pass& pass) const {
    return chunk_of(layout_, p_.model.layers, pass.chunk);
  }
  [[nodiscard]] bool is_first(const Pass& pass) const { return chunk(pass).first; }
  [[nodiscard]] bool is_last(const Pass& pass) const { return chunk(pass).last; }
  [[nodiscard]] Layers layers(const Pass& pass) const { return chunk(pass).layers; }
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

  // What stages send to each other is named after the layer that follows it, on both sides.
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
    receives_[key] = receive_stream(b_, pass.direction, to);
  }
  void wait_for_input(const Pass& pass) {
    const auto found = receives_.find({pass.direction, {pass.chunk, pass.micro}});
    if (found == receives_.end()) return;
    b_.wait(found->second);
    found->second = {};  // still recorded as received
  }

  void send(const Pass& pass, const View& x) {
    const bool forward = pass.direction == Pass::Direction::kForward;
    at_border(pass, forward ? layers(pass).end : layers(pass).first);
    sends_.push_back(send_stream(b_, pass.direction, x));
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

  // They have been in flight for the time of a block. If kept any longer, those of the tables would
  // still be in memory next to the logits, where it is needed most.
  void finish_gradients_of_earlier() {
    const std::int32_t layer = b_.layer();
    b_.enter(Phase::kBackward);
    b_.finish_exchanges();
    b_.enter(Phase::kForward, layer);
  }

  void forward(const Pass& pass) {
    enter(pass);
    std::vector<SavedActivations>& kept = kept_[{pass.chunk, pass.slot}];
    kept.clear();
    const Inputs in = read_inputs(b_, {pass.chunk, pass.slot, is_first(pass), is_last(pass)});
    if (is_first(pass)) token_views_[pass.slot] = in.tokens;
    if (is_last(pass)) targets_ = in.targets;
    documents_[{pass.chunk, pass.slot}] = in.documents;
    b_.set_documents(in.documents);
    View x = in_of(pass);
    if (is_first(pass)) {
      embed(b_, token_views_[pass.slot], x);
    } else {
      wait_for_input(pass);
    }
    const Layers range = layers(pass);
    for (std::int32_t layer = range.first; layer < range.end; ++layer) {
      b_.enter(Phase::kForward, layer);
      b_.forget_scales();
      const View out = b_.matrix(b_.named("out"), stream_rows_, dim_);
      if (layer + 1 == range.end) finish_sends_from(out);
      kept.push_back(forward_block(b_, x, out));
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
    const std::vector<SavedActivations>& kept = kept_[{pass.chunk, pass.slot}];
    b_.set_documents(documents_[{pass.chunk, pass.slot}]);
    View dx = gradient_of(pass);
    wait_for_input(pass);
    const Layers range = layers(pass);
    for (std::int32_t layer = range.end - 1; layer >= range.first; --layer) {
      b_.enter(Phase::kBackward, layer);
      if (layer == range.first && is_last_of_step(pass)) b_.defer_within_pass();
      dx = backward_block(b_, kept[static_cast<std::size_t>(layer - range.first)], dx);
    }
    b_.enter(Phase::kBackward);
    if (!is_first(pass)) return send(pass, dx);
    const View tokens = token_views_[pass.slot];
    if (is_last_of_step(pass)) {
      b_.end_deferring();
      table_gradients(b_, tokens, dx);
      return b_.make_deferred();
    }
    b_.make_weight_gradient([this, tokens, dx] { table_gradients(b_, tokens, dx); });
  }

  // No later pass can hide the exchange of the tables' gradients, the largest of all. So they are
  // computed before the weight gradients of the first block; unless those hide the exchange of keys
  // (context.cc).
  [[nodiscard]] bool is_last_of_step(const Pass& pass) const {
    return is_first(pass) && pass.micro + 1 == micros_ && layout_.data().ranks > 1 &&
           !b_.shares_sequences() && !defers_weight_gradients(layout_);
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
  std::map<std::int32_t, std::int32_t> slots_;  // by chunk: number of slots
  std::map<std::int32_t, View> token_views_;    // by slot
  std::map<std::pair<std::int32_t, std::int32_t>, std::vector<SavedActivations>>
      kept_;                                                         // by chunk and slot
  std::map<std::pair<std::int32_t, std::int32_t>, View> documents_;  // likewise
  std::map<std::pair<Pass::Direction, std::pair<std::int32_t, std::int32_t>>, Op> receives_;
  std::deque<Op> sends_;
};

}  // namespace

Op send_stream(Builder& b, Pass::Direction direction, const View& x) {
  const bool forward = direction == Pass::Direction::kForward;
  return b.issue({.kind = OpKind::kSend,
                  .part = ModelPart::kAllGroups,
                  .in = {x},
                  .axis = forward ? Axis::kPipeline : Axis::kPipelineBack,
                  .peer = stage_beside(b, forward ? 1 : -1)});
}

Op receive_stream(Builder& b, Pass::Direction direction, const View& x) {
  const bool forward = direction == Pass::Direction::kForward;
  return b.issue({.kind = OpKind::kReceive,
                  .part = ModelPart::kAllGroups,
                  .out = {x},
                  .axis = forward ? Axis::kPipeline : Axis::kPipelineBack,
                  .peer = stage_beside(b, forward ? -1 : 1)});
}

std::vector<std::int32_t> units_of_pass(Builder& b, const Pass& pass) {
  std::vector<std::int32_t> units;
  if (pass.direction == Pass::Direction::kWeights) return units;
  const auto add = [&](const std::vector<std::int32_t>& more) {
    units.insert(units.end(), more.begin(), more.end());
  };
  const bool forward = pass.direction == Pass::Direction::kForward;
  const Phase phase = forward ? Phase::kForward : Phase::kBackward;
  const Chunk chunk = chunk_of(b.program().choices.layout, b.model().layers, pass.chunk);
  b.enter(phase);
  if (forward && chunk.first) add(units_of_tables(b));
  const Layers range = chunk.layers;
  for (std::int32_t i = range.first; i < range.end; ++i) {
    b.enter(phase, forward ? i : range.first + range.end - 1 - i);
    add(units_used(b, phase));
  }
  b.enter(phase);
  if (forward && chunk.last) add(units_of_head(b));
  return units;
}

void build_passes(Builder& b) {
  Passes(b).build();
}

}  // namespace assay::step
