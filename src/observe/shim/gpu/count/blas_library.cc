// Finds cuBLAS and cuBLASLt of each version, and reads their descriptors.
#include "observe/shim/gpu/count/blas.h"

extern "C" {
#define ASSAY_WRAPPER(symbol, version)                                                         \
  constinit std::atomic<void*> assay_gpu_real_##symbol##_##version{nullptr};                   \
  ASSAY_EXPORTED extern char assay_gpu_wrapper_##symbol##_##version[] asm("assay_gpu_" #symbol \
                                                                          "_" #version);
#define BLAS(symbol, shape, dimension, factor) ASSAY_EVERY_BLAS(ASSAY_WRAPPER, symbol)
#define BLAS_LT(symbol) ASSAY_EVERY_BLAS(ASSAY_WRAPPER, symbol)
#include "observe/shim/gpu/count/blas_entries.inc"
#undef BLAS
#undef BLAS_LT
}

namespace assay::gpu {

constinit BlasHelpers blas_11 = {};
constinit BlasHelpers blas_12 = {};
constinit BlasHelpers blas_13 = {};

namespace {

#define ASSAY_ENTRY(symbol, version)       \
  {#symbol,                                \
   &assay_gpu_real_##symbol##_##version,   \
   assay_gpu_wrapper_##symbol##_##version, \
   nullptr,                                \
   0,                                      \
   false},
#define BLAS_LT(symbol)
const Entry kCublas11[] = {
#define BLAS(symbol, shape, dimension, factor) ASSAY_ENTRY(symbol, 11)
#include "observe/shim/gpu/count/blas_entries.inc"
#undef BLAS
};
const Entry kCublas12[] = {
#define BLAS(symbol, shape, dimension, factor) ASSAY_ENTRY(symbol, 12)
#include "observe/shim/gpu/count/blas_entries.inc"
#undef BLAS
};
const Entry kCublas13[] = {
#define BLAS(symbol, shape, dimension, factor) ASSAY_ENTRY(symbol, 13)
#include "observe/shim/gpu/count/blas_entries.inc"
#undef BLAS
};
#undef BLAS_LT
const Entry kLt11[] = {ASSAY_ENTRY(cublasLtMatmul, 11)};
const Entry kLt12[] = {ASSAY_ENTRY(cublasLtMatmul, 12)};
const Entry kLt13[] = {ASSAY_ENTRY(cublasLtMatmul, 13)};
#undef ASSAY_ENTRY

template <typename Function>
void find(const Library& library, Function*& function, const char* name) {
  function = reinterpret_cast<Function*>(library.find(name));
}

template <BlasHelpers& kInto>
void found_cublas(const Library& library) {
  find(library, kInto.stream, "cublasGetStream_v2");
}

template <BlasHelpers& kInto>
void found_lt(const Library& library) {
  find(library, kInto.layout, "cublasLtMatrixLayoutGetAttribute");
  find(library, kInto.descriptor, "cublasLtMatmulDescGetAttribute");
}

// cublasLtMatrixLayoutAttribute_t, cublasLtMatmulDescAttributes_t
enum LayoutAttribute : int { kType = 0, kRows = 2, kColumns = 3, kBatch = 5 };
enum DescriptorAttribute : int { kTransposeA = 3 };

template <typename Query, typename Value>
bool read(Query* query, const void* of, int attribute, Value& value) {
  std::size_t written = 0;
  return query != nullptr && of != nullptr &&
         query(of, attribute, &value, sizeof value, &written) == 0;
}

}  // namespace

constinit Finder cublas_11{"libcublas.so.11", kCublas11, sizeof kCublas11 / sizeof(Entry), nullptr,
                           found_cublas<blas_11>};
constinit Finder cublas_12{"libcublas.so.12", kCublas12, sizeof kCublas12 / sizeof(Entry), nullptr,
                           found_cublas<blas_12>};
constinit Finder cublas_13{"libcublas.so.13", kCublas13, sizeof kCublas13 / sizeof(Entry), nullptr,
                           found_cublas<blas_13>};
constinit Finder cublas_lt_11{"libcublasLt.so.11", kLt11, 1, nullptr, found_lt<blas_11>};
constinit Finder cublas_lt_12{"libcublasLt.so.12", kLt12, 1, nullptr, found_lt<blas_12>};
constinit Finder cublas_lt_13{"libcublasLt.so.13", kLt13, 1, nullptr, found_lt<blas_13>};

// D is op(A) op(B), with all their batches.
std::uint64_t flops_of(const BlasHelpers& library, const void* descriptor, const void* a,
                       const void* d) {
  std::uint64_t m = 0;
  std::uint64_t n = 0;
  std::uint64_t k = 0;
  std::int32_t batch = 0;
  std::int32_t transposed = 0;
  std::uint32_t type = 0;
  if (!read(library.layout, d, kRows, m) || !read(library.layout, d, kColumns, n) ||
      !read(library.layout, d, kBatch, batch) ||
      !read(library.descriptor, descriptor, kTransposeA, transposed) ||
      !read(library.layout, a, transposed == 0 ? kColumns : kRows, k) ||
      !read(library.layout, a, kType, type)) {
    return 0;
  }
  return flops_of(factor_of(static_cast<int>(type)), static_cast<std::int64_t>(m),
                  static_cast<std::int64_t>(n), static_cast<std::int64_t>(k), batch);
}

}  // namespace assay::gpu
