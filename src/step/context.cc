// Attention with context parallelism. Keys and values, which are small if query heads share them,
// are gathered from all ranks that share a sequence and put into sequence order; each of the rank's
// two pieces then attends to the keys up to its own end, with one op per sequence:
//
//   sequence   | 0 | 1 | 2 | 3 |      of two ranks; the second has pieces 1 and 2
//   piece 1     k   k,q               sees the keys of two pieces
//   piece 2     k   k   k,q           and of three
//
// In the backward pass, both pieces' gradients of keys and values are added, and each rank gets
// those of its own tokens from all ranks and sums them in rank order. Gathered keys and values are
// not kept: they are gathered again while the gradients of the MLP are computed.
#include "step/context.h"
#include "step/block.h"

namespace assay::step {
namespace {

// One of the two pieces of a sequence that this rank has, and the keys that it attends to.
struct Piece {
  std::int64_t rows_from = 0;  // its queries
  std::int64_t rows = 0;
  std::int64_t keys = 0;  // counted from the beginning of the sequence
};

Piece piece_of(const Builder& b, std::int64_t sequence, bool second) {
  const SequencePart part = b.program().sequence_part();
  return {sequence * part.tokens + (second ? part.piece : 0), part.piece,
          (second ? part.second : part.first) + part.piece};
}

// Causal: a piece sees all keys before itself, and half of its own square.
double piece_flops(const Builder& b, const Piece& piece, double passes) {
  const auto rows = static_cast<double>(piece.rows);
  const double pairs = rows * (static_cast<double>(piece.keys) - rows / 2);
  return passes * 2.0 * pairs * static_cast<double>(b.shape().q);
}

// The keys and values of all ranks, one after the other.
View by_rank(Builder& b, const char* name) {
  const std::int64_t ranks = b.program().choices.layout.context.ranks;
  return b.matrix(b.named(name), ranks * b.program().micro_tokens(), 2 * b.shape().kv);
}

// Waits for the keys and values of all ranks, and puts them into sequence order.
void finish_sharing(Builder& b, SavedActivations& k) {
  const Program& p = b.program();
  b.wait(k.sharing);
  k.keys_values = b.matrix(b.named("keys and values in order"),
                           p.choices.sequence * p.choices.micro_batch, 2 * b.shape().kv);
  b.emit({.kind = OpKind::kOrderKeys,
          .part = ModelPart::kAttention,
          .in = {k.sharing.out[0]},
          .out = {k.keys_values}});
  k.sharing = {};
}

struct KeysValues {
  View keys;
  View values;
};
KeysValues columns_of(const Builder& b, const View& both) {
  const std::int64_t kv = b.shape().kv;
  return {both.columns(0, kv), both.columns(kv, kv)};
}

KeysValues seen_by(const Builder& b, const SavedActivations& k, const Piece& piece,
                   std::int64_t sequence) {
  const std::int64_t from = sequence * b.program().choices.sequence;
  return columns_of(b, k.keys_values.rows_from(from, piece.keys));
}

}  // namespace

SequencePart part_of_sequence(std::int64_t sequence, const AxisPosition& context) {
  if (context.ranks == 1) return {.tokens = sequence, .piece = sequence};
  const std::int64_t piece = sequence / (2 * context.ranks);
  return {.tokens = 2 * piece,
          .piece = piece,
          .first = context.rank * piece,
          .second = (2 * context.ranks - 1 - context.rank) * piece};
}

void share_keys(Builder& b, SavedActivations& k) {
  const BlockShape& s = b.shape();
  const std::int64_t tokens = b.program().micro_tokens();
  const View all = by_rank(b, "keys and values by rank");
  const View own = all.rows_from(b.program().choices.layout.context.rank * tokens, tokens);
  b.emit({.kind = OpKind::kPackKeys,
          .part = ModelPart::kAttention,
          .in = {query_key(k, s).columns(s.q, s.kv), k.qkv.columns(s.q + s.kv, s.kv)},
          .out = {own}});
  k.sharing = b.issue({.kind = OpKind::kAllGather,
                       .part = ModelPart::kAttention,
                       .in = {own},
                       .out = {all},
                       .axis = Axis::kContext});
}

void attend_in_context(Builder& b, SavedActivations& k) {
  finish_sharing(b, k);
  const View q = query_key(k, b.shape()).columns(0, b.shape().q);
  b.repeat(b.program().choices.micro_batch, [&](std::int64_t sequence) {
    for (const bool second : {false, true}) {
      const Piece piece = piece_of(b, sequence, second);
      const KeysValues seen = seen_by(b, k, piece, sequence);
      b.emit({.kind = OpKind::kAttention,
              .part = ModelPart::kAttention,
              .in = {q.rows_from(piece.rows_from, piece.rows), seen.keys, seen.values},
              .out = {k.o.rows_from(piece.rows_from, piece.rows),
                      k.log_sum_exp.rows_from(piece.rows_from, piece.rows)},
              .flops = piece_flops(b, piece, 2)});
    }
  });
}

Op attention_gradients_in_context(Builder& b, SavedActivations& k, const View& d_o,
                                  const View& dq) {
  const Program& p = b.program();
  const std::int64_t sequences = p.choices.micro_batch;
  if (k.sharing.is_exchange()) {
    b.enter(Phase::kRecompute, b.layer());
    finish_sharing(b, k);
    b.enter(Phase::kBackward, b.layer());
  }
  const View q = query_key(k, b.shape()).columns(0, b.shape().q);
  // For the keys that queries of the first pieces see, then those of the second: their total is the
  // same on every rank, so with a single buffer all ranks need the same memory.
  const std::int64_t first_rows = sequences * piece_of(b, 0, false).keys;
  const std::int64_t second_rows = sequences * piece_of(b, 0, true).keys;
  const View of_both = b.matrix(b.named("gradients of seen keys and values"),
                                first_rows + second_rows, 2 * b.shape().kv);
  std::vector<View> gradients = {of_both.rows_from(0, first_rows),
                                 of_both.rows_from(first_rows, second_rows)};
  for (const bool second : {false, true}) {
    const std::int64_t keys = piece_of(b, 0, second).keys;
    const View& all = gradients[second ? 1 : 0];
    b.repeat(sequences, [&](std::int64_t sequence) {
      const Piece piece = piece_of(b, sequence, second);
      const KeysValues seen = seen_by(b, k, piece, sequence);
      const KeysValues to = columns_of(b, all.rows_from(sequence * keys, keys));
      const auto queries = [&](const View& x) { return x.rows_from(piece.rows_from, piece.rows); };
      b.emit({.kind = OpKind::kAttentionGrad,
              .part = ModelPart::kAttention,
              .in = {queries(q), seen.keys, seen.values, queries(k.o), queries(k.log_sum_exp),
                     queries(d_o)},
              .out = {queries(dq), to.keys, to.values},
              .flops = piece_flops(b, piece, 5)});
    });
  }
  const View split = by_rank(b, "gradients of keys and values by rank");
  b.emit({.kind = OpKind::kSplitKeysGrad,
          .part = ModelPart::kAttention,
          .in = std::move(gradients),
          .out = {split}});
  const std::int64_t ranks = p.choices.layout.context.ranks;
  View received = by_rank(b, "received gradients of keys and values");
  received = {received.buffer, 0, ranks, split.elements() / ranks, split.elements() / ranks};
  return b.issue({.kind = OpKind::kAllToAll,
                  .part = ModelPart::kAttention,
                  .in = {split},
                  .out = {received},
                  .axis = Axis::kContext});
}

void add_key_gradients(Builder& b, const Op& exchange, const View& dkv) {
  b.wait(exchange);
  b.emit({.kind = OpKind::kSumKeysGrad,
          .part = ModelPart::kAttention,
          .in = {exchange.out[0]},
          .out = {dkv}});
}

}  // namespace assay::step
