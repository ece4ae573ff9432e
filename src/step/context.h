// Context parallelism: ranks that share sequences. A sequence is cut into two pieces for each of
// its n ranks, and rank i has pieces i and 2n - 1 - i, so that with causal attention all ranks have
// the same amount of work.
#pragma once

#include <cstdint>

#include "step/layout.h"

namespace assay::step {

class Builder;
struct SavedActivations;
struct Op;
struct View;

// The tokens that a rank has of each of its sequences, in order: all of them, or those of two
// pieces of equal length.
struct SequencePart {
  std::int64_t tokens = 0;  // per sequence
  std::int64_t piece = 0;   // length of a piece
  std::int64_t first = 0;   // start of each piece in the sequence
  std::int64_t second = 0;

  // The position in its sequence of the token in this row of a micro-batch.
  [[nodiscard]] std::int64_t position(std::int64_t row) const {
    const std::int64_t at = row % tokens;
    return at < piece ? first + at : second + at - piece;
  }
  // The row of the token with this position in a micro-batch's first sequence; -1 if another rank
  // has it.
  [[nodiscard]] std::int64_t row_of(std::int64_t position) const {
    if (position >= first && position < first + piece) return position - first;
    if (tokens > piece && position >= second && position < second + piece) {
      return piece + position - second;
    }
    return -1;
  }
};

SequencePart part_of_sequence(std::int64_t sequence, const AxisPosition& context);

// The attention of a block. share_keys() starts gathering keys and values as early as possible;
// their gradients are exchanged while the caller computes something else.
void share_keys(Builder& b, SavedActivations& k);
void attend_in_context(Builder& b, SavedActivations& k);
Op attention_gradients_in_context(Builder& b, SavedActivations& k, const View& d_o, const View& dq);
void add_key_gradients(Builder& b, const Op& exchange, const View& dkv);

}  // namespace assay::step
