// GroupedProduct: the description of the products of a mixture's experts, each with the rows that
// its tokens have filled, and the product of one of them.
#pragma once

#include <cstdint>

#include "train/cuda/matrix.h"
#include "train/cuda/product.h"

namespace assay::train::cuda {

// Three forms, by what is transposed; rows of `a` are in the order of experts:
//   b     c = a b^T: rows times weights
//   none  c = a b: gradients of rows
//   a     c = a^T b, where b has rows of experts too: gradients of weights
// Weights, and their gradients, lie one below the other.
//
// In fp8 all operands lie along what is summed, so those of the last two forms are transposes:
// weights side by side, and of rows each expert's columns begin and end at a multiple of
// step::kFp8Alignment.
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
  std::int64_t pieces = 1;  // of an expert's rows: see step::Op::pieces
  // Of all experts; 0: as many as there is room for. Where ranks have different experts there is
  // room for the most that can come, which is several times what comes.
  std::int64_t expected_rows = 0;
  // In device memory: of all pieces, and the end. Null: only the host has them.
  const std::int32_t* first_rows = nullptr;

  // Products with rows are as many as there are pieces; those of gradients, as experts.
  [[nodiscard]] std::int64_t products() const { return transpose_a ? experts : experts * pieces; }
  [[nodiscard]] bool fp8() const { return !scale_a.empty(); }
  // Whether rows of experts are columns of the operands.
  [[nodiscard]] bool sums_over_columns() const { return transpose_a && fp8(); }
  // Rows that there is room for.
  [[nodiscard]] std::int64_t rows() const { return sums_over_columns() ? a.cols : a.rows; }
  [[nodiscard]] std::int64_t rows_to_expect() const {
    return expected_rows > 0 ? expected_rows : rows();
  }
  // Of one expert, if it has the `count` rows, or columns, from `first` on.
  [[nodiscard]] Product of_expert(std::int64_t expert, std::int64_t first,
                                  std::int64_t count) const;
  // The product that is timed: of an expert or piece with an even share, rounded up.
  [[nodiscard]] Product planned() const;
};

}  // namespace assay::train::cuda
