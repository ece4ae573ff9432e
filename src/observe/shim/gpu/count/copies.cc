// Copies and memsets whose size is in a struct, in several arguments or in a list.
#include "observe/shim/gpu/lookup/driver.h"
#include "observe/shim/gpu/pace/pace.h"
#include "observe/shim/gpu/region/region.h"

namespace assay::gpu {
namespace {

enum MemoryType : unsigned { kHost = 1, kDevice = 2, kArray = 3, kUnified = 4 };

// CUDA_MEMCPY2D_v2
struct Copy2d {
  std::size_t source_x, source_y;
  unsigned source_type;
  const void* source_host;
  std::uint64_t source_device;
  void* source_array;
  std::size_t source_pitch;
  std::size_t target_x, target_y;
  unsigned target_type;
  void* target_host;
  std::uint64_t target_device;
  void* target_array;
  std::size_t target_pitch;
  std::size_t width, height;
};
static_assert(offsetof(Copy2d, target_type) == 72 && offsetof(Copy2d, width) == 112);

// CUDA_MEMCPY3D_v2 and, with a context in place of a reserved field, CUDA_MEMCPY3D_PEER
struct Copy3d {
  std::size_t source_x, source_y, source_z, source_level;
  unsigned source_type;
  const void* source_host;
  std::uint64_t source_device;
  void* source_array;
  void* source_context;
  std::size_t source_pitch, source_height;
  std::size_t target_x, target_y, target_z, target_level;
  unsigned target_type;
  void* target_host;
  std::uint64_t target_device;
  void* target_array;
  void* target_context;
  std::size_t target_pitch, target_height;
  std::size_t width, height, depth;
};
static_assert(offsetof(Copy3d, target_type) == 120 && offsetof(Copy3d, width) == 176);

// CUDA_MEMCPY3D_BATCH_OP
struct BatchCopy {
  unsigned char ends[80];
  std::size_t width, height, depth;
  unsigned order, flags;
};
static_assert(sizeof(BatchCopy) == 112);

GpuQuantity direction(unsigned from, unsigned to) {
  if (from == kArray || to == kArray) return GpuQuantity::kCopyArray;
  if (from == kHost && to == kDevice) return GpuQuantity::kCopyToDevice;
  if (from == kDevice && to == kHost) return GpuQuantity::kCopyToHost;
  if (from == kDevice && to == kDevice) return GpuQuantity::kCopyOnDevice;
  return GpuQuantity::kCopyUnified;
}

// The work of a call, as it is counted.
struct Copied {
  GpuQuantity quantity;
  std::uint64_t bytes = 0;
  std::uint64_t calls = 1;
};
Copied what(const Copy2d* copy) {
  if (copy == nullptr) return {GpuQuantity::kCopyUnified, 0, 0};
  return {direction(copy->source_type, copy->target_type), copy->width * copy->height};
}
Copied what(const Copy3d* copy) {
  if (copy == nullptr) return {GpuQuantity::kCopyUnified, 0, 0};
  return {direction(copy->source_type, copy->target_type),
          copy->width * copy->height * copy->depth};
}
Copied what_to_peer(const Copy3d* copy) {
  if (copy == nullptr) return {GpuQuantity::kCopyToPeer, 0, 0};
  return {GpuQuantity::kCopyToPeer, copy->width * copy->height * copy->depth};
}
Copied what(const std::size_t* sizes, std::size_t copies) {
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; sizes != nullptr && i < copies; ++i) bytes += sizes[i];
  return {GpuQuantity::kCopyUnified, bytes, copies};
}
Copied what(const BatchCopy* list, std::size_t copies) {
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; list != nullptr && i < copies; ++i) {
    bytes += list[i].width * list[i].height * list[i].depth;
  }
  return {GpuQuantity::kCopyUnified, bytes, copies};
}
Copied what_is_set(std::size_t width, std::size_t height, std::size_t size) {
  return {GpuQuantity::kSet, width * height * size};
}

CopyKind kind_of(GpuQuantity quantity) {
  switch (quantity) {
    case GpuQuantity::kCopyToDevice:
      return CopyKind::kToDevice;
    case GpuQuantity::kCopyToHost:
      return CopyKind::kToHost;
    case GpuQuantity::kCopyOnDevice:
      return CopyKind::kOnDevice;
    case GpuQuantity::kCopyToPeer:
      return CopyKind::kToPeer;
    case GpuQuantity::kCopyArray:
      return CopyKind::kArray;
    case GpuQuantity::kSet:
      return CopyKind::kSet;
    default:
      return CopyKind::kUnified;
  }
}

template <typename Call>
Result counted(const Copied& copied, void* stream, bool per_thread, Call call) {
  if (copied.calls != 0) count(copied.quantity, copied.bytes, copied.calls);
  return paced_copy(kind_of(copied.quantity), copied.bytes, stream, per_thread, call);
}

}  // namespace
}  // namespace assay::gpu

using assay::gpu::BatchCopy;
using assay::gpu::Copy2d;
using assay::gpu::Copy3d;

// A symbol and its variant for per-thread streams, with the same body.
#define ASSAY_COUNTED(symbol, per_thread, parameters, copied, stream, arguments)            \
  ASSAY_EXPORTED int symbol parameters {                                                    \
    ASSAY_REAL(symbol);                                                                     \
    return assay::gpu::counted(copied, stream, per_thread, [&] { return next arguments; }); \
  }
#define ASSAY_BOTH(symbol, suffix, parameters, copied, stream, arguments) \
  ASSAY_COUNTED(symbol, false, parameters, copied, stream, arguments)     \
  ASSAY_COUNTED(symbol##suffix, true, parameters, copied, stream, arguments)

extern "C" {

using assay::gpu::what;
using assay::gpu::what_is_set;
using assay::gpu::what_to_peer;

ASSAY_BOTH(cuMemcpy2D_v2, _ptds, (const Copy2d* copy), what(copy), nullptr, (copy))
ASSAY_BOTH(cuMemcpy2DUnaligned_v2, _ptds, (const Copy2d* copy), what(copy), nullptr, (copy))
ASSAY_BOTH(cuMemcpy2DAsync_v2, _ptsz, (const Copy2d* copy, void* stream), what(copy), stream,
           (copy, stream))
ASSAY_BOTH(cuMemcpy3D_v2, _ptds, (const Copy3d* copy), what(copy), nullptr, (copy))
ASSAY_BOTH(cuMemcpy3DAsync_v2, _ptsz, (const Copy3d* copy, void* stream), what(copy), stream,
           (copy, stream))
ASSAY_BOTH(cuMemcpy3DPeer, _ptds, (const Copy3d* copy), what_to_peer(copy), nullptr, (copy))
ASSAY_BOTH(cuMemcpy3DPeerAsync, _ptsz, (const Copy3d* copy, void* stream), what_to_peer(copy),
           stream, (copy, stream))

ASSAY_BOTH(cuMemcpyBatchAsync, _ptsz,
           (std::uint64_t * to, std::uint64_t* from, std::size_t* sizes, std::size_t copies,
            void* attributes, std::size_t* indices, std::size_t number, std::size_t* failed,
            void* stream),
           what(sizes, copies), stream,
           (to, from, sizes, copies, attributes, indices, number, failed, stream))
ASSAY_BOTH(cuMemcpyBatchAsync_v2, _ptsz,
           (std::uint64_t * to, std::uint64_t* from, std::size_t* sizes, std::size_t copies,
            void* attributes, std::size_t* indices, std::size_t number, void* stream),
           what(sizes, copies), stream,
           (to, from, sizes, copies, attributes, indices, number, stream))
ASSAY_BOTH(cuMemcpy3DBatchAsync, _ptsz,
           (std::size_t copies, BatchCopy* list, std::size_t* failed, std::uint64_t flags,
            void* stream),
           what(list, copies), stream, (copies, list, failed, flags, stream))
ASSAY_BOTH(cuMemcpy3DBatchAsync_v2, _ptsz,
           (std::size_t copies, BatchCopy* list, std::uint64_t flags, void* stream),
           what(list, copies), stream, (copies, list, flags, stream))

#define ASSAY_SET_2D(bits, type)                                                                \
  ASSAY_BOTH(                                                                                   \
      cuMemsetD2D##bits##_v2, _ptds,                                                            \
      (std::uint64_t to, std::size_t pitch, type value, std::size_t width, std::size_t height), \
      what_is_set(width, height, sizeof(type)), nullptr, (to, pitch, value, width, height))     \
  ASSAY_BOTH(cuMemsetD2D##bits##Async, _ptsz,                                                   \
             (std::uint64_t to, std::size_t pitch, type value, std::size_t width,               \
              std::size_t height, void* stream),                                                \
             what_is_set(width, height, sizeof(type)), stream,                                  \
             (to, pitch, value, width, height, stream))
ASSAY_SET_2D(8, unsigned char)
ASSAY_SET_2D(16, unsigned short)
ASSAY_SET_2D(32, unsigned int)
}
#undef ASSAY_COUNTED
#undef ASSAY_BOTH
#undef ASSAY_SET_2D
