// Context parallelism: ranks that share sequences. A sequence is cut into two pieces for each of
// its n ranks, and rank i has piece i and piece 2n - 1 - i, so that with causal attention all ranks
// have equally many keys to look at. How attention is made of that: context.cc.
#pragma once

#include <cstdint>

#include "step/layout.h"

namespace assay::step {

// Which tokens of each of its sequences a rank has, and in which order: all of them, or those of
// two pieces of equal length.
struct SequencePart {
  std::int64_t tokens = 0;  // of each sequence
  std::int64_t piece = 0;   // of these, how many are one piece
  std::int64_t first = 0;   // where in the sequence the pieces begin
  std::int64_t second = 0;

  // The position in its sequence of the token in this row of a micro-batch.
  [[nodiscard]] std::int64_t position(std::int64_t row) const {
    const std::int64_t at = row % tokens;
    return at < piece ? first + at : second + at - piece;
  }
  // The row of the token with this position in a micro-batch's first sequence, or -1: another
  // rank's.
  [[nodiscard]] std::int64_t row_of(std::int64_t position) const {
    if (position >= first && position < first + piece) return position - first;
    if (tokens > piece && position >= second && position < second + piece) {
      return piece + position - second;
    }
    return -1;
  }
};

SequencePart part_of_sequence(std::int64_t sequence, const Place& context);

}  // namespace assay::step
