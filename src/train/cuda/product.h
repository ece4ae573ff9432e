// Product: the description of a matrix product, and its translation for cuBLASLt.
//
// Matrices here are row-major, cuBLASLt's are column-major: it sees the transpose of every matrix,
// so it computes c^T = op(b)^T op(a)^T, with b first.
#pragma once

#include <cublasLt.h>

#include <cstdint>

#include "train/cuda/matrix.h"
#include "train/cuda/tuning.h"

namespace assay::train::cuda {

// c = alpha op(a) op(b) + beta addend + bias. The addend may be c itself; without one beta is 0.
// fp8 requires a not transposed and b transposed: the only form with tensor cores.
struct Product {
  bool transpose_a = false;
  bool transpose_b = false;
  float alpha = 1;
  float beta = 0;
  Matrix a;
  Matrix b;
  Matrix scale_a;  // not empty: a and b are fp8, each scaled by one fp32 number
  Matrix scale_b;
  Matrix addend;
  Matrix bias;  // one row, added to every row
  Matrix c;

  [[nodiscard]] bool fp8() const { return !scale_a.empty(); }
  [[nodiscard]] std::int64_t inner() const { return transpose_a ? a.rows : a.cols; }
};

ProductKey key_of(const Product& product);

// The caller destroys the results.
cublasLtMatrixLayout_t layout_of(const Matrix& matrix, bool fp8 = false);
cublasLtMatmulDesc_t operation_of(const Product& product);
cublasLtMatmulPreference_t preference_of(const ProductKey& key, std::int64_t workspace_bytes);

}  // namespace assay::train::cuda
