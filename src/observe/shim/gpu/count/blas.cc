// Matmuls of cuBLAS and cuBLASLt: calls, and flops from their sizes. Counted after the library
// returns, in the outermost call only, because cuBLAS calls cuBLASLt. A captured matmul has not
// run: it is counted separately, and launches of its graph are not seen here.
#include "observe/shim/gpu/count/blas.h"

#include "observe/shim/gpu/lookup/driver.h"
#include "observe/shim/gpu/region/region.h"

namespace assay::gpu {
namespace {

constexpr int kBlasNotInitialized = 1;

__thread int calls_inside __attribute__((tls_model("initial-exec"))) = 0;

class Call {
 public:
  Call() { ++calls_inside; }
  ~Call() { --calls_inside; }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  [[nodiscard]] static bool is_outermost() { return calls_inside == 1; }
};

// The legacy stream, by either of its names, cannot be captured.
bool is_captured(void* stream) {
  int status = 0;
  return reinterpret_cast<std::uintptr_t>(stream) > 1 && driver_ready() &&
         helpers.is_capturing != nullptr && helpers.is_capturing(stream, &status) == 0 &&
         status != 0;
}

void* stream_of(const BlasHelpers& library, void* handle) {
  void* stream = nullptr;
  return library.stream != nullptr && library.stream(handle, &stream) == 0 ? stream : nullptr;
}

void add_flops(bool captured, std::uint64_t flops) {
  std::atomic<std::uint64_t>& left = block().flops_left[captured ? 1 : 0];
  const std::uint64_t sum = left.load(std::memory_order_relaxed) + flops % wire::kGpuFlopUnit;
  left.store(sum % wire::kGpuFlopUnit, std::memory_order_relaxed);
  count(captured ? GpuQuantity::kMatmulCaptured : GpuQuantity::kMatmul,
        flops / wire::kGpuFlopUnit + sum / wire::kGpuFlopUnit);
}

void multiplied(std::uint64_t flops, void* stream) {
  const bool captured = is_captured(stream);
  if (captured) count(GpuQuantity::kMatmul);
  add_flops(captured, flops);
}

// Shared by all wrappers, and not inlined into each.
[[gnu::noinline]] int counted(int result, const BlasHelpers& library, void* handle,
                              std::uint64_t factor, std::int64_t m, std::int64_t n, std::int64_t k,
                              std::int64_t batch) {
  if (!Call::is_outermost()) return result;
  if (result != 0) {
    count(GpuQuantity::kMatmul);
  } else {
    multiplied(flops_of(factor, m, n, k, batch), stream_of(library, handle));
  }
  return result;
}
[[gnu::noinline]] int counted(int result, const BlasHelpers& library, const void* descriptor,
                              const void* a, const void* d, void* stream) {
  if (!Call::is_outermost()) return result;
  if (result != 0) {
    count(GpuQuantity::kMatmul);
  } else {
    multiplied(flops_of(library, descriptor, a, d), stream);
  }
  return result;
}

}  // namespace
}  // namespace assay::gpu

// The parameters of each shape, and the same as arguments.
#define ASSAY_BEGIN(N) void *handle, int trans_a, int trans_b, N m, N n, N k, const void *alpha
#define ASSAY_PASS_BEGIN handle, trans_a, trans_b, m, n, k, alpha
#define PLAIN_PARAMETERS(N) \
  ASSAY_BEGIN(N), const void *a, N lda, const void *b, N ldb, const void *beta, void *c, N ldc
#define PLAIN_ARGUMENTS ASSAY_PASS_BEGIN, a, lda, b, ldb, beta, c, ldc
#define PLAIN_BATCH 1
#define BATCHED_PARAMETERS(N) PLAIN_PARAMETERS(N), N batch
#define BATCHED_ARGUMENTS PLAIN_ARGUMENTS, batch
#define BATCHED_BATCH batch
#define STRIDED_PARAMETERS(N)                                                     \
  ASSAY_BEGIN(N), const void *a, N lda, long long stride_a, const void *b, N ldb, \
      long long stride_b, const void *beta, void *c, N ldc, long long stride_c, N batch
#define STRIDED_ARGUMENTS \
  ASSAY_PASS_BEGIN, a, lda, stride_a, b, ldb, stride_b, beta, c, ldc, stride_c, batch
#define STRIDED_BATCH batch
#define TYPED_PARAMETERS(N)                                                           \
  ASSAY_BEGIN(N), const void *a, int type_a, N lda, const void *b, int type_b, N ldb, \
      const void *beta, void *c, int type_c, N ldc
#define TYPED_ARGUMENTS ASSAY_PASS_BEGIN, a, type_a, lda, b, type_b, ldb, beta, c, type_c, ldc
#define TYPED_BATCH 1
#define EX_PARAMETERS(N) TYPED_PARAMETERS(N), int compute, int algorithm
#define EX_ARGUMENTS TYPED_ARGUMENTS, compute, algorithm
#define EX_BATCH 1
#define BATCHED_EX_PARAMETERS(N) TYPED_PARAMETERS(N), N batch, int compute, int algorithm
#define BATCHED_EX_ARGUMENTS TYPED_ARGUMENTS, batch, compute, algorithm
#define BATCHED_EX_BATCH batch
#define STRIDED_EX_PARAMETERS(N)                                                                   \
  ASSAY_BEGIN(N), const void *a, int type_a, N lda, long long stride_a, const void *b, int type_b, \
      N ldb, long long stride_b, const void *beta, void *c, int type_c, N ldc, long long stride_c, \
      N batch, int compute, int algorithm
#define STRIDED_EX_ARGUMENTS                                                                  \
  ASSAY_PASS_BEGIN, a, type_a, lda, stride_a, b, type_b, ldb, stride_b, beta, c, type_c, ldc, \
      stride_c, batch, compute, algorithm
#define STRIDED_EX_BATCH batch

// Exported under the library's symbol name and version, but not as the default version of that
// name: a lookup by name alone finds what it would find without this library.
#define ASSAY_EXPORT(symbol, library, version) \
  asm(".symver assay_gpu_" #symbol "_" #version ", " #symbol "@" library "." #version);

#define ASSAY_NEXT(symbol, library, version)                                            \
  if (!assay::gpu::library##_##version.ready()) return assay::gpu::kBlasNotInitialized; \
  auto* const next = assay::gpu::real<decltype(assay_gpu_##symbol##_##version)>(        \
      assay_gpu_real_##symbol##_##version);                                             \
  if (next == nullptr) return assay::gpu::kBlasNotInitialized;                          \
  const assay::gpu::Call call

#define ASSAY_GEMM(symbol, shape, N, factor, version)                                \
  ASSAY_EXPORTED int assay_gpu_##symbol##_##version(shape##_PARAMETERS(N)) {         \
    using namespace assay::gpu;                                                      \
    ASSAY_NEXT(symbol, cublas, version);                                             \
    return counted(next(shape##_ARGUMENTS), blas_##version, handle, factor, m, n, k, \
                   shape##_BATCH);                                                   \
  }                                                                                  \
  ASSAY_EXPORT(symbol, "libcublas.so", version)

#define ASSAY_LT(symbol, version)                                                                  \
  ASSAY_EXPORTED int assay_gpu_##symbol##_##version(                                               \
      void* handle, const void* descriptor, const void* alpha, const void* a,                      \
      const void* a_layout, const void* b, const void* b_layout, const void* beta, const void* c,  \
      const void* c_layout, void* d, const void* d_layout, const void* algorithm, void* workspace, \
      std::size_t size, void* stream) {                                                            \
    using namespace assay::gpu;                                                                    \
    ASSAY_NEXT(symbol, cublas_lt, version);                                                        \
    return counted(next(handle, descriptor, alpha, a, a_layout, b, b_layout, beta, c, c_layout, d, \
                        d_layout, algorithm, workspace, size, stream),                             \
                   blas_##version, descriptor, a_layout, d_layout, stream);                        \
  }                                                                                                \
  ASSAY_EXPORT(symbol, "libcublasLt.so", version)

extern "C" {
#define BLAS(symbol, shape, dimension, factor) \
  ASSAY_EVERY_BLAS(ASSAY_GEMM, symbol, shape, dimension, factor)
#define BLAS_LT(symbol) ASSAY_EVERY_BLAS(ASSAY_LT, symbol)
#include "observe/shim/gpu/count/blas_entries.inc"
}
