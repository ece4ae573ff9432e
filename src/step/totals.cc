// Builds a step for totals: one block of each distinct kind, and what is before and after the
// blocks, with the number of times a rank executes it (passes.cc emits them one by one).
#include "step/totals.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "step/block.h"
#include "step/builder.h"
#include "step/embedding.h"
#include "step/head.h"
#include "step/op.h"
#include "step/optimizer.h"
#include "step/passes.h"
#include "step/recompute.h"
#include "step/rules.h"
#include "step/sink.h"

namespace assay::step {
namespace {

class TotalsSink final : public Sink {
 public:
  // `ordered`: also fills Totals::order.
  explicit TotalsSink(const Layout& layout, bool ordered = false)
      : layout_(layout), ordered_(ordered) {}

  [[nodiscard]] bool unrolls() const override { return false; }
  BufferId add(Buffer buffer) override {
    buffers_.push_back(std::move(buffer));
    return static_cast<BufferId>(buffers_.size() - 1);
  }
  void add(Op op, std::int64_t times) override;

  // The totals since the last call.
  Totals take() { return std::exchange(totals_, {}); }

 private:
  void note(Moment::What what, std::size_t index, std::int32_t ticket = -1) {
    if (ordered_) totals_.order.push_back({what, index, ticket});
  }

  const Layout& layout_;
  bool ordered_;
  std::vector<Buffer> buffers_;  // without names
  Totals totals_;
};

void TotalsSink::add(Op op, std::int64_t times) {
  if (times == 0) return;
  if (op.kind == OpKind::kWait) return note(Moment::What::kWait, 0, op.ticket);
  if (op.is_exchange()) {
    const std::size_t at =
        add_calls(counted_exchange(op, buffers_, layout_, times), totals_.exchanges);
    return note(Moment::What::kIssue, at, op.ticket);
  }
  const View& first = op.in.empty() ? op.out[0] : op.in[0];
  const MovedBytes moved = moved_bytes(op, buffers_);
  CountedOp one{.kind = op.kind,
                .phase = op.phase,
                .part = op.part,
                .type = buffers_[static_cast<std::size_t>(first.buffer)].type,
                .flops = op.flops,
                .read = moved.read,
                .written = moved.written,
                .count = times};
  if (one.is_product()) {
    one.m = op.out[0].rows;
    one.n = op.out[0].cols;
    one.k = op.transpose_a && !op.scaled ? first.rows : first.cols;
    if (op.kind == OpKind::kGroupedMatmul) {
      // The operand holds the first row of each expert or piece, then the end.
      one.groups = (op.in[2].cols - 1) / (op.transpose_a ? op.pieces : 1);
      one.groups_share_k = op.transpose_a;
    }
  }
  const auto same = std::find_if(totals_.ops.begin(), totals_.ops.end(),
                                 [&](const CountedOp& known) { return known.same_but_count(one); });
  note(Moment::What::kOp, static_cast<std::size_t>(same - totals_.ops.begin()));
  if (same == totals_.ops.end()) {
    totals_.ops.push_back(one);
  } else {
    same->count += times;
  }
}

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
  const SavedActivations kept = forward_block(b, stream(), stream());
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
