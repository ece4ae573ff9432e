// Flops of matmuls, for the wrappers of cuBLAS (blas.cc) and for the code that finds the library
// (blas_library.cc).
#pragma once

#include "observe/shim/gpu/lookup/finder.h"

#define ASSAY_EVERY_BLAS(X, ...) X(__VA_ARGS__, 11) X(__VA_ARGS__, 12) X(__VA_ARGS__, 13)

extern "C" {
#define ASSAY_REAL_BLAS(symbol, version) \
  extern ASSAY_HIDDEN std::atomic<void*> assay_gpu_real_##symbol##_##version;
#define BLAS(symbol, shape, dimension, factor) ASSAY_EVERY_BLAS(ASSAY_REAL_BLAS, symbol)
#define BLAS_LT(symbol) ASSAY_EVERY_BLAS(ASSAY_REAL_BLAS, symbol)
#include "observe/shim/gpu/count/blas_entries.inc"
#undef BLAS
#undef BLAS_LT
#undef ASSAY_REAL_BLAS
}

namespace assay::gpu {

// Functions of one version that are called but not wrapped; null if it has none.
struct BlasHelpers {
  int (*stream)(void* handle, void** stream);
  int (*layout)(const void* layout, int attribute, void* to, std::size_t size,
                std::size_t* written);
  int (*descriptor)(const void* of, int attribute, void* to, std::size_t size,
                    std::size_t* written);
};
extern constinit BlasHelpers blas_11, blas_12, blas_13;

// A complex product takes four real products and two additions.
inline constexpr std::uint64_t kReal = 2;
inline constexpr std::uint64_t kComplex = 8;

// By cudaDataType.
constexpr std::uint64_t factor_of(int type) {
  constexpr std::uint32_t kComplexTypes = (1U << 4U) | (1U << 5U) | (1U << 6U) | (1U << 7U) |
                                          (1U << 9U) | (1U << 11U) | (1U << 13U) | (1U << 15U) |
                                          (1U << 17U) | (1U << 19U) | (1U << 21U) | (1U << 23U) |
                                          (1U << 25U) | (1U << 27U);
  return type >= 0 && type < 32 && ((kComplexTypes >> static_cast<unsigned>(type)) & 1U) != 0
             ? kComplex
             : kReal;
}

// 0 if there is nothing to compute, or an impossible amount.
constexpr std::uint64_t flops_of(std::uint64_t factor, std::int64_t m, std::int64_t n,
                                 std::int64_t k, std::int64_t batch) {
  std::uint64_t product = factor;
  for (const std::int64_t size : {m, n, k, batch}) {
    if (size <= 0 || __builtin_mul_overflow(product, static_cast<std::uint64_t>(size), &product)) {
      return 0;
    }
  }
  return product;
}

// Of a successful call of cublasLtMatmul. 0 if one of its descriptors cannot be read.
std::uint64_t flops_of(const BlasHelpers& library, const void* descriptor, const void* a,
                       const void* d);

}  // namespace assay::gpu
