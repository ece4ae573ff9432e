// Copies and sets whose size stands in a struct, in several arguments or in a list.
#include "observe/shim/gpu/gpu.h"

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

// CUDA_MEMCPY3D_v2 and, with a context where that has a reserved word, CUDA_MEMCPY3D_PEER
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

void count_copy(const Copy2d* copy) {
  if (copy == nullptr) return;
  count(direction(copy->source_type, copy->target_type), copy->width * copy->height);
}
void count_copy(const Copy3d* copy) {
  if (copy == nullptr) return;
  count(direction(copy->source_type, copy->target_type), copy->width * copy->height * copy->depth);
}
void count_peer_copy(const Copy3d* copy) {
  if (copy == nullptr) return;
  count(GpuQuantity::kCopyToPeer, copy->width * copy->height * copy->depth);
}
void count_batch(const std::size_t* sizes, std::size_t copies) {
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; sizes != nullptr && i < copies; ++i) bytes += sizes[i];
  count(GpuQuantity::kCopyUnified, bytes, copies);
}
void count_batch(const BatchCopy* list, std::size_t copies) {
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; list != nullptr && i < copies; ++i) {
    bytes += list[i].width * list[i].height * list[i].depth;
  }
  count(GpuQuantity::kCopyUnified, bytes, copies);
}

}  // namespace
}  // namespace assay::gpu

using assay::gpu::BatchCopy;
using assay::gpu::Copy2d;
using assay::gpu::Copy3d;
using assay::gpu::GpuQuantity;

// A symbol and its variant for per-thread streams, with the same body.
#define ASSAY_COUNTED(symbol, parameters, counting, arguments) \
  ASSAY_EXPORTED int symbol parameters {                       \
    ASSAY_REAL(symbol);                                        \
    counting;                                                  \
    return next arguments;                                     \
  }
#define ASSAY_BOTH(symbol, suffix, parameters, counting, arguments) \
  ASSAY_COUNTED(symbol, parameters, counting, arguments)            \
  ASSAY_COUNTED(symbol##suffix, parameters, counting, arguments)

extern "C" {

ASSAY_BOTH(cuMemcpy2D_v2, _ptds, (const Copy2d* copy), count_copy(copy), (copy))
ASSAY_BOTH(cuMemcpy2DUnaligned_v2, _ptds, (const Copy2d* copy), count_copy(copy), (copy))
ASSAY_BOTH(cuMemcpy2DAsync_v2, _ptsz, (const Copy2d* copy, void* stream), count_copy(copy),
           (copy, stream))
ASSAY_BOTH(cuMemcpy3D_v2, _ptds, (const Copy3d* copy), count_copy(copy), (copy))
ASSAY_BOTH(cuMemcpy3DAsync_v2, _ptsz, (const Copy3d* copy, void* stream), count_copy(copy),
           (copy, stream))
ASSAY_BOTH(cuMemcpy3DPeer, _ptds, (const Copy3d* copy), count_peer_copy(copy), (copy))
ASSAY_BOTH(cuMemcpy3DPeerAsync, _ptsz, (const Copy3d* copy, void* stream), count_peer_copy(copy),
           (copy, stream))

ASSAY_BOTH(cuMemcpyBatchAsync, _ptsz,
           (std::uint64_t * to, std::uint64_t* from, std::size_t* sizes, std::size_t copies,
            void* attributes, std::size_t* indices, std::size_t number, std::size_t* failed,
            void* stream),
           assay::gpu::count_batch(sizes, copies),
           (to, from, sizes, copies, attributes, indices, number, failed, stream))
ASSAY_BOTH(cuMemcpyBatchAsync_v2, _ptsz,
           (std::uint64_t * to, std::uint64_t* from, std::size_t* sizes, std::size_t copies,
            void* attributes, std::size_t* indices, std::size_t number, void* stream),
           assay::gpu::count_batch(sizes, copies),
           (to, from, sizes, copies, attributes, indices, number, stream))
ASSAY_BOTH(cuMemcpy3DBatchAsync, _ptsz,
           (std::size_t copies, BatchCopy* list, std::size_t* failed, std::uint64_t flags,
            void* stream),
           count_batch(list, copies), (copies, list, failed, flags, stream))
ASSAY_BOTH(cuMemcpy3DBatchAsync_v2, _ptsz,
           (std::size_t copies, BatchCopy* list, std::uint64_t flags, void* stream),
           count_batch(list, copies), (copies, list, flags, stream))

#define ASSAY_SET_2D(bits, type)                                                                \
  ASSAY_BOTH(                                                                                   \
      cuMemsetD2D##bits##_v2, _ptds,                                                            \
      (std::uint64_t to, std::size_t pitch, type value, std::size_t width, std::size_t height), \
      assay::gpu::count(GpuQuantity::kSet, width* height * sizeof(type)),                       \
      (to, pitch, value, width, height))                                                        \
  ASSAY_BOTH(cuMemsetD2D##bits##Async, _ptsz,                                                   \
             (std::uint64_t to, std::size_t pitch, type value, std::size_t width,               \
              std::size_t height, void* stream),                                                \
             assay::gpu::count(GpuQuantity::kSet, width* height * sizeof(type)),                \
             (to, pitch, value, width, height, stream))
ASSAY_SET_2D(8, unsigned char)
ASSAY_SET_2D(16, unsigned short)
ASSAY_SET_2D(32, unsigned int)
}
#undef ASSAY_COUNTED
#undef ASSAY_BOTH
#undef ASSAY_SET_2D
