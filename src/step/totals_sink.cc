#include "step/totals_sink.h"

#include <algorithm>

#include "step/block.h"
#include "step/embedding.h"
#include "step/head.h"
#include "step/op.h"

namespace assay::step {

void TotalsSink::add(Op op, std::int64_t times) {
  if (times == 0) return;
  if (op.kind == OpKind::kWait) return note(ScheduleEvent::What::kWait, 0, op.ticket);
  if (op.is_exchange()) {
    const std::size_t at =
        add_calls(counted_exchange(op, buffers_, layout_, times), totals_.exchanges);
    return note(ScheduleEvent::What::kIssue, at, op.ticket);
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
  note(ScheduleEvent::What::kOp, static_cast<std::size_t>(same - totals_.ops.begin()));
  if (same == totals_.ops.end()) {
    totals_.ops.push_back(one);
  } else {
    same->count += times;
  }
}

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

void set_documents(Builder& b) {
  if (!b.program().choices.document_mask) return;
  b.set_documents(b.matrix({}, b.program().micro_tokens(), 1, Dtype::kI32, Storage::kInputs));
}

}  // namespace assay::step
