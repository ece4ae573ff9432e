// GroupedProduct: describes the products of a mixture's experts, each with as many rows as tokens
// were routed to it; of_expert() is the product of one expert.
#pragma once

#include <cstdint>

#include "train/cuda/matrix.h"
#include "train/cuda/product.h"

namespace assay::train::cuda {

// Three forms, distinguished by what is transposed; the rows of `a` are sorted by expert:
//   b     c = a b^T: rows times weights
//   none  c = a b: gradients of rows
//   a     c = a^T b, where the rows of b are sorted by expert too: gradients of weights
// The weights of all experts, and their gradients, are stacked vertically.
//
// In fp8 all operands must be contiguous along the summed dimension, so the last two forms use
// transposed operands: the weights side by side, and for rows each expert's columns begin and end
// at a multiple of step::kFp8Alignment.
struct GroupedProduct {
  bool transpose_a = false;
  bool transpose_b = false;
  bool adds = false;
  Matrix a;
  Matrix b;
  Matrix c;
  Matrix scale_a;  // not empty: a and b are fp8
  Matrix scale_b;
  std::int64_t experts = 0;
  std::int64_t pieces = 1;  // pieces per expert: see step::Op::pieces
  // Expected rows of all experts; 0: the capacity. With expert parallelism the capacity is the
  // worst case, several times what usually arrives.
  std::int64_t expected_rows = 0;
  // In device memory: the first row of every piece, then the end. Null: only the host has them.
  const std::int32_t* first_rows = nullptr;

  // One product per piece; for weight gradients one per expert.
  [[nodiscard]] std::int64_t products() const { return transpose_a ? experts : experts * pieces; }
  [[nodiscard]] bool fp8() const { return !scale_a.empty(); }
  // Whether the experts' rows are columns of the operands.
  [[nodiscard]] bool sums_over_columns() const { return transpose_a && fp8(); }
  // Capacity in rows.
  [[nodiscard]] std::int64_t rows() const { return sums_over_columns() ? a.cols : a.rows; }
  [[nodiscard]] std::int64_t rows_to_expect() const {
    return expected_rows > 0 ? expected_rows : rows();
  }
  // The product of one expert, which has `count` rows (or columns) from `first` on.
  [[nodiscard]] Product of_expert(std::int64_t expert, std::int64_t first,
                                  std::int64_t count) const;
  // The product that is timed: an expert or piece with an even share of the rows, rounded up.
  [[nodiscard]] Product planned() const;
};

}  // namespace assay::train::cuda
