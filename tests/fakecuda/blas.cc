// A libcublas without GPUs: a matmul reads its arguments and counts the call, but multiplies
// nothing. cublasGemmEx calls cuBLASLt, as the real one does. The version is set when it is linked:
// several may be in one process.
#include <atomic>
#include <cstdint>
#include <tuple>
#include <type_traits>

#include "observe/shim/gpu/testing/blas_shapes.h"

extern "C" {
int cublasLtMatmulDescCreate(void**, int, int);
int cublasLtMatmulDescDestroy(void*);
int cublasLtMatmulDescSetAttribute(void*, int, const void*, unsigned long);
int cublasLtMatrixLayoutCreate(void**, int, std::uint64_t, std::uint64_t, std::int64_t);
int cublasLtMatrixLayoutDestroy(void*);
fakeblas::LtMatmul cublasLtMatmul;
}

namespace {

constexpr int kInvalidValue = 7;

std::atomic<std::uint64_t> calls{0};
std::atomic<std::uint64_t> digest{0};

struct Handle {
  void* stream;
};

enum class Shape { PLAIN, ARRAYS, STRIDES, TYPES, EX, ARRAYS_EX, STRIDES_EX };

// Index of the argument that is the number of matrices; 0: none.
constexpr std::size_t batch_of(Shape shape) {
  switch (shape) {
    case Shape::ARRAYS:
      return 14;
    case Shape::STRIDES:
    case Shape::ARRAYS_EX:
      return 17;
    case Shape::STRIDES_EX:
      return 20;
    default:
      return 0;
  }
}

int through_lt(int trans_a, int trans_b, std::uint64_t m, std::uint64_t n, std::uint64_t k,
               int type, void* stream) {
  void* descriptor = nullptr;
  void *a = nullptr, *b = nullptr, *c = nullptr;
  cublasLtMatmulDescCreate(&descriptor, 0, type);
  cublasLtMatmulDescSetAttribute(descriptor, 3, &trans_a, sizeof trans_a);
  cublasLtMatmulDescSetAttribute(descriptor, 4, &trans_b, sizeof trans_b);
  cublasLtMatrixLayoutCreate(&a, type, trans_a == 0 ? m : k, trans_a == 0 ? k : m, 1);
  cublasLtMatrixLayoutCreate(&b, type, trans_b == 0 ? k : n, trans_b == 0 ? n : k, 1);
  cublasLtMatrixLayoutCreate(&c, type, m, n, 1);
  const int result = cublasLtMatmul(nullptr, descriptor, &a, &a, a, &b, b, &a, &c, c, &c, c,
                                    nullptr, nullptr, 0, stream);
  cublasLtMatmulDescDestroy(descriptor);
  for (void* layout : {a, b, c}) cublasLtMatrixLayoutDestroy(layout);
  return result;
}

template <typename T>
std::uint64_t word(T value) {
  if constexpr (std::is_pointer_v<T>) {
    return reinterpret_cast<std::uint64_t>(value);
  } else {
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
  }
}

template <Shape kShape, typename Signature>
struct Gemm;
template <Shape kShape, typename... P>
struct Gemm<kShape, int(void*, P...)> {
  static int call(void* handle, P... given) {
    const std::tuple all(handle, given...);
    if (handle == nullptr || std::get<3>(all) < 0 || std::get<4>(all) < 0) return kInvalidValue;
    calls.fetch_add(1);
    std::uint64_t seen = 5381;  // hash of all arguments in order
    ((seen = seen * 1099511628211U ^ word(given)), ...);
    digest.fetch_add(seen);
    if constexpr (batch_of(kShape) != 0) {
      if (std::get<batch_of(kShape)>(all) < 0) return kInvalidValue;
    }
    if constexpr (kShape == Shape::EX) {
      return through_lt(std::get<1>(all), std::get<2>(all), word(std::get<3>(all)),
                        word(std::get<4>(all)), word(std::get<5>(all)), std::get<8>(all),
                        static_cast<Handle*>(handle)->stream);
    }
    return 0;
  }
};

}  // namespace

// The functions are jumps, because a function cannot be defined through an alias of its type.
#define GEMM(symbol, shape, N, flops)                                                         \
  extern "C" {                                                                                \
  __attribute__((visibility("hidden"), used)) fakeblas::Shapes<N>::shape* fakeblas_##symbol = \
      Gemm<Shape::shape, fakeblas::Shapes<N>::shape>::call;                                   \
  }                                                                                           \
  asm(".text\n.globl " #symbol "\n.type " #symbol ", @function\n" #symbol                     \
      ": jmp *fakeblas_" #symbol "(%rip)\n.size " #symbol ", .-" #symbol "\n");
#include "observe/shim/gpu/testing/blas_calls.inc"
#undef GEMM

extern "C" {
int cublasCreate_v2(void** handle) {
  *handle = new Handle{nullptr};
  return 0;
}
int cublasDestroy_v2(void* handle) {
  delete static_cast<Handle*>(handle);
  return 0;
}
int cublasSetStream_v2(void* handle, void* stream) {
  static_cast<Handle*>(handle)->stream = stream;
  return 0;
}
int cublasGetStream_v2(void* handle, void** stream) {
  if (handle == nullptr) return 1;
  *stream = static_cast<Handle*>(handle)->stream;
  return 0;
}
unsigned long fakeblas_calls() {
  return calls.load();
}
unsigned long fakeblas_digest() {
  return digest.load();
}
}
