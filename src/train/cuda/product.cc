#include "train/cuda/product.h"

#include <bit>

namespace assay::train::cuda {
namespace {

std::int64_t alignment_of(const Product& p, const Matrix& m) {
  const auto most = static_cast<std::uintptr_t>(p.alignment);
  return static_cast<std::int64_t>(
      std::countr_zero((reinterpret_cast<std::uintptr_t>(m.data) | most)));
}

}  // namespace

ProductKey key_of(const Product& p) {
  ProductKey key{};
  const auto at = [&](KeyPart part) -> std::int64_t& {
    return key[static_cast<std::size_t>(part)];
  };
  at(KeyPart::kRows) = p.c.rows;
  at(KeyPart::kCols) = p.c.cols;
  at(KeyPart::kInner) = p.inner();
  at(KeyPart::kTransposes) = (p.transpose_a ? 1 : 0) + (p.transpose_b ? 2 : 0) +
                             (p.in_group ? 4 : 0) + (p.is_kernel_choice ? 8 : 0);
  at(KeyPart::kAddend) = p.addend.empty() ? 0 : p.addend.data == p.c.data ? 1 : 2;
  at(KeyPart::kBias) = p.bias.empty() ? 0 : 1;
  at(KeyPart::kFp8) = p.fp8() ? 1 : 0;
  at(KeyPart::kFp32Result) = p.fp32_result ? 1 : 0;
  at(KeyPart::kStrideA) = p.a.stride;
  at(KeyPart::kStrideB) = p.b.stride;
  at(KeyPart::kStrideAddend) = p.addend.empty() ? p.c.stride : p.addend.stride;
  at(KeyPart::kStrideC) = p.c.stride;
  const Matrix& addend = p.addend.empty() ? p.c : p.addend;
  at(KeyPart::kAlignment) = alignment_of(p, p.a) | alignment_of(p, p.b) << 8 |
                            alignment_of(p, addend) << 16 | alignment_of(p, p.c) << 24;
  return key;
}

// Row-major against column-major: see product.h.
cublasLtMatrixLayout_t layout_of(const Matrix& m, cudaDataType_t type) {
  cublasLtMatrixLayout_t layout = nullptr;
  cublasLtMatrixLayoutCreate(&layout, type, static_cast<std::uint64_t>(m.cols),
                             static_cast<std::uint64_t>(m.rows), m.stride);
  return layout;
}

void change_layout(cublasLtMatrixLayout_t layout, const Matrix& m) {
  const auto set = [&](cublasLtMatrixLayoutAttribute_t what, std::int64_t count) {
    const auto value = static_cast<std::uint64_t>(count);
    cublasLtMatrixLayoutSetAttribute(layout, what, &value, sizeof value);
  };
  set(CUBLASLT_MATRIX_LAYOUT_ROWS, m.cols);
  set(CUBLASLT_MATRIX_LAYOUT_COLS, m.rows);
}

cublasLtMatmulDesc_t operation_of(const Product& p) {
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatmulDescCreate(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F);
  const auto set = [&](cublasLtMatmulDescAttributes_t what, auto value) {
    cublasLtMatmulDescSetAttribute(operation, what, &value, sizeof value);
  };
  const auto turned = [](bool transposed) { return transposed ? CUBLAS_OP_T : CUBLAS_OP_N; };
  set(CUBLASLT_MATMUL_DESC_TRANSA, turned(p.transpose_b));
  set(CUBLASLT_MATMUL_DESC_TRANSB, turned(p.transpose_a));
  if (!p.bias.empty()) {
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void*>(p.bias.data));
  }
  if (p.fp8()) {
    set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, static_cast<const void*>(p.scale_b.data));
    set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, static_cast<const void*>(p.scale_a.data));
  }
  return operation;
}

cublasLtMatmulPreference_t preference_of(const ProductKey& key, std::int64_t workspace_bytes) {
  cublasLtMatmulPreference_t preference = nullptr;
  cublasLtMatmulPreferenceCreate(&preference);
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t what, auto value) {
    cublasLtMatmulPreferenceSetAttribute(preference, what, &value, sizeof value);
  };
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<std::uint64_t>(workspace_bytes));
  // In-place reductions add in the order in which blocks finish, and reductions in the output type
  // round partial sums to bf16: only fp32 partial sums are deterministic and exact enough.
  set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
      static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  const auto alignment = key[static_cast<std::size_t>(KeyPart::kAlignment)];
  const auto bytes = [&](int place) { return std::uint32_t{1} << ((alignment >> place) & 0xff); };
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, bytes(8));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, bytes(0));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, bytes(16));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, bytes(24));
  return preference;
}

}  // namespace assay::train::cuda
