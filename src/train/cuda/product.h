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

// c = alpha op(a) op(b) + beta addend + bias. The addend may be c itself; without an addend beta is
// 0. fp8 requires that a is not transposed and b is: tensor cores support no other form.
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
  bool fp32_result = false;  // c and the addend are fp32, not bf16
  // Bytes: alignments of operands are assumed to be no larger, for products whose operands move.
  std::int64_t alignment = 256;
  bool in_group = false;  // runs next to others, so a different algorithm may be fastest
  // For grouped products: the table entry is not an algorithm, but whether our own kernel is
  // faster.
  bool is_kernel_choice = false;

  [[nodiscard]] bool fp8() const { return !scale_a.empty(); }
  [[nodiscard]] std::int64_t inner() const { return transpose_a ? a.rows : a.cols; }
  [[nodiscard]] cudaDataType_t operand_type() const { return fp8() ? CUDA_R_8F_E4M3 : CUDA_R_16BF; }
  [[nodiscard]] cudaDataType_t result_type() const {
    return fp32_result ? CUDA_R_32F : CUDA_R_16BF;
  }
};

ProductKey key_of(const Product& product);

// The caller destroys the results.
cublasLtMatrixLayout_t layout_of(const Matrix& matrix, cudaDataType_t type = CUDA_R_16BF);
// Changes the layout to another matrix of the same stride and type.
void change_layout(cublasLtMatrixLayout_t layout, const Matrix& matrix);
cublasLtMatmulDesc_t operation_of(const Product& product);
cublasLtMatmulPreference_t preference_of(const ProductKey& key, std::int64_t workspace_bytes);

}  // namespace assay::train::cuda
