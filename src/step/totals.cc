// Builds a step for totals: one block of each distinct kind, and what is before and after the
// blocks, with the number of times a rank executes it (passes.cc emits them one by one).
#include "step/totals.h"

#include <algorithm>
#include <utility>

#include "step/builder.h"
#include "step/recompute.h"
#include "step/rules.h"
#include "step/totals_sink.h"

namespace assay::step {
namespace {

// Equal blocks: some layers of a stage in some micro-batches.
struct BlockKind {
  std::int32_t layer = 0;  // a representative
  std::int32_t micro = 0;  // likewise
  Builder::RepeatCounts repeats;
  bool defers = false;  // gradients of weights are made after the rest
};

bool recomputes(const Program& p, std::int32_t layer) {
  return p.choices.recompute != spec::Recompute::kNone && recomputes_layer(layer, p.model.layers);
}

// A block of one kind, forward and back.
void emit_block(Builder& b, const BlockKind& kind) {
  const auto stream = [&] { return b.matrix({}, b.stream_rows(), b.shape().dim); };
  b.begin_pass(kind.micro, 0);
  b.set_repeats(kind.repeats);
  b.enter(Phase::kForward, kind.layer);
  b.forget_scales();
  const Kept kept = forward_block(b, stream(), stream());
  b.enter(Phase::kBackward, kind.layer);
  if (kind.defers) b.defer_weight_gradients();
  backward_block(b, kept, stream());
  if (kind.defers) b.make_deferred();
}

// Sets up the documents that attention reads.
void set_documents(Builder& b) {
  if (!b.program().choices.document_mask) return;
  b.set_documents(b.matrix({}, b.program().micro_tokens(), 1, Dtype::kI32, Storage::kInputs));
}

void emit_first(Builder& b, const View& tokens) {
  const View x = b.matrix({}, b.stream_rows(), b.shape().dim);
  b.enter(Phase::kForward);
  embed(b, tokens, x);
  b.enter(Phase::kBackward);
  table_gradients(b, tokens, x);
}

void emit_last(Builder& b, const View& targets) {
  const View x = b.matrix({}, b.stream_rows(), b.shape().dim);
  const View dx = b.matrix({}, b.stream_rows(), b.shape().dim);
  b.enter(Phase::kForward);
  build_head(b, x, targets, &dx);
}

class RankWalk {
 public:
  RankWalk(Program& p, Sink& sink) : p_(p), layout_(p.choices.layout), b_(p, sink) {
    add_scalars(b_);
    set_documents(b_);
  }

  void walk() {
    for (const BlockKind& kind : block_kinds()) emit_block(b_, kind);
    for (std::int32_t chunk = 0; chunk < layout_.chunks; ++chunk) emit_ends(chunk);
    b_.count_gathers(passes_of(layout_, p_.choices.accumulate, true));
    b_.count_gradients(p_.choices.accumulate);
    b_.begin_pass(0, 0);
    b_.set_repeats({});
    build_optimizer(b_);
  }

 private:
  [[nodiscard]] Chunk chunk(std::int32_t index) const {
    return chunk_of(layout_, p_.model.layers, index);
  }

  // Layers differ in their kind and in how much of them is kept; and the first one in its last
  // backward pass (Passes::is_last_of_step).
  [[nodiscard]] std::vector<BlockKind> block_kinds() const {
    std::vector<BlockKind> kinds;
    bool has_mixture = false;
    for (std::int32_t i = 0; i < layout_.chunks; ++i) {
      const Layers range = chunk(i).layers;
      for (std::int32_t layer = range.first; layer < range.end; ++layer) {
        add_layer(layer, kinds, has_mixture);
      }
    }
    return kinds;
  }

  void add_layer(std::int32_t layer, std::vector<BlockKind>& kinds, bool& has_mixture) const {
    const std::int64_t micros = p_.choices.accumulate;
    const bool mixture = p_.model.is_moe_layer(layer);
    const bool begins = mixture && !std::exchange(has_mixture, has_mixture || mixture);
    const bool defers = defers_weight_gradients(layout_);
    const bool one_rank = layout_.data().ranks == 1;
    const bool reordered = layer == 0 && !one_rank && !b_.shares_sequences() && !defers;
    const auto add = [&](std::int32_t micro, std::int64_t times, bool deferred) {
      if (times == 0) return;
      const auto same = std::find_if(kinds.begin(), kinds.end(), [&](const BlockKind& known) {
        return !begins && known.micro == micro && known.defers == deferred &&
               known.repeats.micros == times && p_.model.is_moe_layer(known.layer) == mixture &&
               recomputes(p_, known.layer) == recomputes(p_, layer);
      });
      if (same != kinds.end()) {
        ++same->repeats.layers;
        return;
      }
      kinds.push_back({layer, micro, {1, times, begins, micro == 0}, deferred});
    };
    // In the first micro-batch of a single rank, gradients need no buffer besides the sums.
    if (defers && one_rank) {
      add(0, 1, true);
      add(1, micros - 1, true);
    } else if (reordered) {
      add(0, micros - 1, false);
      // The last micro-batch, which may also be the first.
      add(static_cast<std::int32_t>(micros - 1), 1, true);
    } else {
      add(0, micros, defers);
    }
  }

  void emit_ends(std::int32_t index) {
    const Chunk at = chunk(index);
    const View stream = b_.matrix({}, b_.stream_rows(), b_.shape().dim);
    b_.begin_pass(0, 0);
    b_.set_repeats({.micros = p_.choices.accumulate});
    b_.enter(Phase::kForward);
    const Inputs in = read_inputs(b_, {index, 0, at.first, at.last});
    if (at.first) emit_first(b_, in.tokens);
    if (at.last) emit_last(b_, in.targets);
    b_.enter(Phase::kForward);
    if (!at.first) receive_stream(b_, Pass::Direction::kForward, stream);
    if (!at.last) send_stream(b_, Pass::Direction::kForward, stream);
    b_.enter(Phase::kBackward);
    if (!at.last) receive_stream(b_, Pass::Direction::kBackward, stream);
    if (!at.first) send_stream(b_, Pass::Direction::kBackward, stream);
  }

  Program& p_;
  const Layout& layout_;
  Builder b_;
};

}  // namespace

bool CountedOp::same_but_count(const CountedOp& other) const {
  return kind == other.kind && phase == other.phase && part == other.part && read == other.read &&
         written == other.written && m == other.m && n == other.n && k == other.k &&
         type == other.type && groups == other.groups && groups_share_k == other.groups_share_k &&
         flops == other.flops;
}

double Totals::flops() const {
  double sum = 0;
  for (const CountedOp& op : ops) sum += op.flops * static_cast<double>(op.count);
  return sum;
}

base::Result<Totals> totals_of(const spec::ModelSpec& model, const Choices& choices) {
  ASSAY_TRY_VOID(check(model, choices));
  Program p;
  p.model = model;
  p.choices = choices;
  TotalsSink sink(p.choices.layout);
  add_state(p, sink);
  RankWalk(p, sink).walk();
  return sink.take();
}

MicroTotals micro_totals(const spec::ModelSpec& model, const Choices& choices) {
  Program p;
  p.model = model;
  p.choices = choices;
  // One of each kind; if there are others, not the last layer, which recomputes nothing.
  std::vector<std::int32_t> layers;
  for (const bool mixture : {false, true}) {
    for (std::int32_t layer = 0; layer < model.layers; ++layer) {
      if (model.is_moe_layer(layer) != mixture) continue;
      layers.push_back(layer);
      break;
    }
  }
  p.parameters = list_parameters(model, choices.optimizer, choices.layout, layers);
  TotalsSink sink(p.choices.layout, true);
  Builder b(p, sink);
  add_scalars(b);
  set_documents(b);
  MicroTotals totals;
  for (const std::int32_t layer : layers) {
    emit_block(b, {.layer = layer});
    (model.is_moe_layer(layer) ? totals.mixture : totals.dense) = sink.take();
  }
  b.begin_pass(0, 0);
  b.set_repeats({});
  b.enter(Phase::kForward);
  const Inputs in = read_inputs(b, {.first = true, .last = true});
  emit_first(b, in.tokens);
  totals.first = sink.take();
  emit_last(b, in.targets);
  totals.last = sink.take();
  return totals;
}

}  // namespace assay::step
