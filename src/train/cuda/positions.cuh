// Positions of a micro-batch's rows in their sequences (step/context.h), for kernels.
#pragma once

#include "step/context.h"

namespace assay::train::cuda {

struct RowPositions {
  unsigned tokens;  // of each sequence
  unsigned piece;
  unsigned first;
  unsigned second;

  __device__ unsigned of(std::uint64_t row) const {
    const auto at = static_cast<unsigned>(row % tokens);
    return at < piece ? first + at : second + at - piece;
  }
  // The row of the first sequence that has this position, or -1.
  __device__ int row_of(unsigned position) const {
    if (position >= first && position < first + piece) return static_cast<int>(position - first);
    const bool has_second = tokens > piece && position >= second && position < second + piece;
    return has_second ? static_cast<int>(piece + position - second) : -1;
  }
};

inline RowPositions row_positions(const step::SequencePart& part) {
  return {static_cast<unsigned>(part.tokens), static_cast<unsigned>(part.piece),
          static_cast<unsigned>(part.first), static_cast<unsigned>(part.second)};
}

}  // namespace assay::train::cuda
