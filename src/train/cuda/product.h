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

// c = alpha op(a) op(b) + beta addend + bias. The addend may be c itself; without one beta is 0. Of
// fp8 operands a is not transposed and b is: the only way there are tensor cores for.
struct Product {
  bool transpose_a = false;
  bool transpose_b = false;
  float alpha = 1;
  float beta = 0;
  Matrix a;
  Matrix b;
  Matrix scale_a;  // there: a and b are fp8, to be multiplied with one fp32 number each
  Matrix scale_b;
  Matrix addend;
  Matrix bias;  // one row, added to every row
  Matrix c;

  [[nodiscard]] bool fp8() const { return !scale_a.empty(); }
  [[nodiscard]] std::int64_t inner() const { return transpose_a ? a.rows : a.cols; }
};

ProductKey key_of(const Product& product);

// To be destroyed by the caller.
cublasLtMatrixLayout_t layout_of(const Matrix& matrix, bool fp8 = false);
cublasLtMatmulDesc_t operation_of(const Product& product);
cublasLtMatmulPreference_t preference_of(const ProductKey& key, std::int64_t workspace_bytes);

}  // namespace assay::train::cuda
