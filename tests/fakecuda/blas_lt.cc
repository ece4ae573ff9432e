// A libcublasLt without GPUs: descriptions are kept, and a matmul whose sizes agree is counted.
//
//   FAKEBLAS_NO_ATTRIBUTES=1   nothing can be read back from a description
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "observe/shim/gpu/testing/blas_shapes.h"

namespace {

constexpr int kInvalidValue = 7;

std::atomic<std::uint64_t> calls{0};

struct Layout {
  std::uint32_t type;
  std::uint64_t rows, columns;
  std::int32_t batch;
};
struct Descriptor {
  std::int32_t transposed[2];
};

int copied(const void* value, std::size_t size, void* to, std::size_t capacity,
           std::size_t* written) {
  static const bool none = std::getenv("FAKEBLAS_NO_ATTRIBUTES") != nullptr;
  if (none || to == nullptr || capacity < size) return kInvalidValue;
  std::memcpy(to, value, size);
  if (written != nullptr) *written = size;
  return 0;
}

}  // namespace

extern "C" {

int cublasLtMatrixLayoutCreate(void** out, int type, std::uint64_t rows, std::uint64_t columns,
                               std::int64_t) {
  *out = new Layout{static_cast<std::uint32_t>(type), rows, columns, 1};
  return 0;
}
int cublasLtMatrixLayoutDestroy(void* layout) {
  delete static_cast<Layout*>(layout);
  return 0;
}
int cublasLtMatrixLayoutSetAttribute(void* layout, int attribute, const void* from,
                                     std::size_t size) {
  if (attribute != 5 || size != sizeof(std::int32_t)) return kInvalidValue;
  std::memcpy(&static_cast<Layout*>(layout)->batch, from, size);
  return 0;
}
int cublasLtMatrixLayoutGetAttribute(const void* layout, int attribute, void* to,
                                     std::size_t capacity, std::size_t* written) {
  const auto* of = static_cast<const Layout*>(layout);
  switch (attribute) {
    case 0:
      return copied(&of->type, sizeof of->type, to, capacity, written);
    case 2:
      return copied(&of->rows, sizeof of->rows, to, capacity, written);
    case 3:
      return copied(&of->columns, sizeof of->columns, to, capacity, written);
    case 5:
      return copied(&of->batch, sizeof of->batch, to, capacity, written);
    default:
      return kInvalidValue;
  }
}
int cublasLtMatmulDescCreate(void** out, int, int) {
  *out = new Descriptor{};
  return 0;
}
int cublasLtMatmulDescDestroy(void* descriptor) {
  delete static_cast<Descriptor*>(descriptor);
  return 0;
}
int cublasLtMatmulDescSetAttribute(void* descriptor, int attribute, const void* from,
                                   std::size_t size) {
  if ((attribute != 3 && attribute != 4) || size != sizeof(std::int32_t)) return kInvalidValue;
  std::memcpy(&static_cast<Descriptor*>(descriptor)->transposed[attribute - 3], from, size);
  return 0;
}
int cublasLtMatmulDescGetAttribute(const void* descriptor, int attribute, void* to,
                                   std::size_t capacity, std::size_t* written) {
  if (attribute != 3 && attribute != 4) return kInvalidValue;
  const auto& value = static_cast<const Descriptor*>(descriptor)->transposed[attribute - 3];
  return copied(&value, sizeof value, to, capacity, written);
}

int cublasLtMatmul(void*, void* descriptor, const void*, const void*, void* a, const void*, void* b,
                   const void*, const void*, void*, void*, void* d, const void*, void*,
                   unsigned long, void*) {
  if (descriptor == nullptr || a == nullptr || b == nullptr || d == nullptr) return kInvalidValue;
  const auto& how = *static_cast<Descriptor*>(descriptor);
  Layout left = *static_cast<Layout*>(a);
  Layout right = *static_cast<Layout*>(b);
  const Layout& result = *static_cast<Layout*>(d);
  if (how.transposed[0] != 0) std::swap(left.rows, left.columns);
  if (how.transposed[1] != 0) std::swap(right.rows, right.columns);
  if (left.columns != right.rows || left.rows != result.rows || right.columns != result.columns ||
      left.batch != right.batch || left.batch != result.batch) {
    return kInvalidValue;
  }
  calls.fetch_add(1);
  return 0;
}

unsigned long fakeblas_lt_calls() {
  return calls.load();
}
}
