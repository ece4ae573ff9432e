// Product: a matrix product as we say it, and as cuBLASLt is told it.
//
// Our rows are cuBLASLt's columns: what it sees is the transpose of every matrix, so it is asked
// for c^T = op(b)^T op(a)^T, with b first.
#pragma once

#include <cublasLt.h>

#include <cstdint>

#include "train/cuda/matrix.h"
#include "train/cuda/tuning.h"

namespace assay::train::cuda {

// c = alpha op(a) op(b) + beta addend + bias. The addend may be c itself; without one beta is 0.
struct Product {
  bool transpose_a = false;
  bool transpose_b = false;
  float alpha = 1;
  float beta = 0;
  Matrix a;
  Matrix b;
  Matrix addend;
  Matrix bias;  // one row, added to every row
  Matrix c;

  [[nodiscard]] std::int64_t inner() const { return transpose_a ? a.rows : a.cols; }
};

ProductKey key_of(const Product& product);

// To be destroyed by the caller.
cublasLtMatrixLayout_t layout_of(const Matrix& matrix);
cublasLtMatmulDesc_t operation_of(const Product& product);
cublasLtMatmulPreference_t preference_of(const ProductKey& key, std::int64_t workspace_bytes);

}  // namespace assay::train::cuda
