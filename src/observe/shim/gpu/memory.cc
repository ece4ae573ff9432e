// Allocations and frees, by every allocator: how often, how much, and how much is live per device.
// A limit will have its place before the real call (GpuDevice::limit) and its roll-back after it.
#include "observe/shim/gpu/gpu.h"
#include "observe/shim/gpu/size_map.h"

namespace assay::gpu {
namespace {

using wire::kGpuDevices;

// Lines of the region by the process's own numbers for devices: 1 more than the line; 0: not asked.
constexpr int kOrdinals = 64;
constinit std::atomic<std::uint32_t> lines[kOrdinals] = {};

std::uint32_t line_of(int ordinal) {
  if (ordinal < 0 || ordinal >= kOrdinals || region() == nullptr) return kGpuDevices;
  if (const std::uint32_t known = lines[ordinal].load(std::memory_order_relaxed); known != 0) {
    return known - 1;
  }
  std::uint64_t uuid[2] = {};
  if (helpers.device_uuid == nullptr ||
      helpers.device_uuid(reinterpret_cast<unsigned char*>(uuid), ordinal) != 0) {
    return kGpuDevices;
  }
  const auto line = static_cast<std::uint32_t>(wire::claim_device(*region(), uuid[0], uuid[1]));
  lines[ordinal].store(line + 1, std::memory_order_relaxed);
  return line;
}

std::uint32_t current_line() {
  int ordinal = -1;
  if (helpers.current_device == nullptr || helpers.current_device(&ordinal) != 0) {
    return kGpuDevices;
  }
  return line_of(ordinal);
}

wire::GpuSlot* own_slot() {
  const int mine = slot();
  return region() == nullptr || mine < 0 ? nullptr : &region()->slots[mine];
}

void more_used(std::uint32_t line, std::uint64_t bytes) {
  wire::GpuSlot* mine = own_slot();
  if (mine == nullptr || line >= kGpuDevices) return;
  const std::uint64_t now = mine->used[line].fetch_add(bytes, std::memory_order_relaxed) + bytes;
  std::uint64_t peak = mine->peak[line].load(std::memory_order_relaxed);
  while (now > peak &&
         !mine->peak[line].compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
}

void less_used(std::uint32_t line, std::uint64_t bytes) {
  wire::GpuSlot* mine = own_slot();
  if (mine == nullptr || line >= kGpuDevices) return;
  mine->used[line].fetch_sub(bytes, std::memory_order_relaxed);
}

// After the driver's answer. kGpuDevices: not on a device.
void allocated(Result result, GpuQuantity quantity, SizeMap& in, std::uint64_t key,
               std::uint64_t bytes, std::uint32_t line) {
  if (result != 0) {
    count(GpuQuantity::kRefused, bytes);
    return;
  }
  count(quantity, bytes);
  in.insert(key, {bytes, line, 0});
  more_used(line, bytes);
}

// Taken out before the driver is asked: another thread may be given the same address at once.
// What we never saw is the driver's to judge.
template <typename Free>
Result freed(SizeMap& in, std::uint64_t key, Free free) {
  Known known;
  const bool found = in.take(key, known);
  const Result result = free();
  if (result != 0) {
    if (found) in.insert(key, known);
    return result;
  }
  count(GpuQuantity::kFree, found ? known.size : 0);
  if (found) less_used(known.first, known.size);
  return result;
}

std::uint64_t number(const void* pointer) {
  return reinterpret_cast<std::uint64_t>(pointer);
}

// CUDA_ARRAY_DESCRIPTOR_v2, CUDA_ARRAY3D_DESCRIPTOR_v2
struct Array2d {
  std::size_t width, height;
  unsigned format, channels;
};
struct Array3d {
  std::size_t width, height, depth;
  unsigned format, channels, flags;
};

std::uint64_t channel_bytes(unsigned format) {
  switch (format) {
    case 0x02:
    case 0x09:
    case 0x10:
      return 2;
    case 0x03:
    case 0x0A:
    case 0x20:
      return 4;
    default:
      return 1;
  }
}
std::uint64_t at_least_one(std::size_t value) {
  return value == 0 ? 1 : value;
}
// Without the padding that the driver adds. A mipmap's further levels are a third more at most.
std::uint64_t bytes_of(const Array2d* array) {
  if (array == nullptr) return 0;
  return array->width * at_least_one(array->height) * array->channels *
         channel_bytes(array->format);
}
std::uint64_t bytes_of(const Array3d* array) {
  if (array == nullptr) return 0;
  return array->width * at_least_one(array->height) * at_least_one(array->depth) * array->channels *
         channel_bytes(array->format);
}

// CUmemAllocationProp, as far as we read it
struct Properties {
  int type, handle_types;
  int location_type, location;
};

// CUDA_MEM_ALLOC_NODE_PARAMS
struct AllocationNode {
  unsigned char before[104];
  std::size_t bytes;
  std::uint64_t address;
};

}  // namespace
}  // namespace assay::gpu

using assay::gpu::Array2d;
using assay::gpu::Array3d;
using assay::gpu::GpuQuantity;

#define ASSAY_ALLOCATOR(symbol, parameters, arguments, quantity, map, key, bytes, line)          \
  ASSAY_EXPORTED int symbol parameters {                                                         \
    ASSAY_REAL(symbol);                                                                          \
    const int result = next arguments;                                                           \
    assay::gpu::allocated(result, GpuQuantity::quantity, assay::gpu::map, result == 0 ? key : 0, \
                          bytes, line);                                                          \
    return result;                                                                               \
  }

extern "C" {

ASSAY_ALLOCATOR(cuMemAlloc_v2, (std::uint64_t * out, std::size_t size), (out, size), kAllocDevice,
                pointers, *out, size, assay::gpu::current_line())
ASSAY_ALLOCATOR(cuMemAllocManaged, (std::uint64_t * out, std::size_t size, unsigned flags),
                (out, size, flags), kAllocManaged, pointers, *out, size, assay::gpu::current_line())
ASSAY_ALLOCATOR(cuMemAllocAsync, (std::uint64_t * out, std::size_t size, void* stream),
                (out, size, stream), kAllocAsync, pointers, *out, size, assay::gpu::current_line())
ASSAY_ALLOCATOR(cuMemAllocAsync_ptsz, (std::uint64_t * out, std::size_t size, void* stream),
                (out, size, stream), kAllocAsync, pointers, *out, size, assay::gpu::current_line())
ASSAY_ALLOCATOR(cuMemAllocFromPoolAsync,
                (std::uint64_t * out, std::size_t size, void* pool, void* stream),
                (out, size, pool, stream), kAllocAsync, pointers, *out, size,
                assay::gpu::current_line())
ASSAY_ALLOCATOR(cuMemAllocFromPoolAsync_ptsz,
                (std::uint64_t * out, std::size_t size, void* pool, void* stream),
                (out, size, pool, stream), kAllocAsync, pointers, *out, size,
                assay::gpu::current_line())
ASSAY_ALLOCATOR(cuMemAllocPitch_v2,
                (std::uint64_t * out, std::size_t* pitch, std::size_t width, std::size_t height,
                 unsigned element),
                (out, pitch, width, height, element), kAllocDevice, pointers, *out,
                (result == 0 ? *pitch : width) * height, assay::gpu::current_line())
ASSAY_ALLOCATOR(cuArrayCreate_v2, (void** out, const Array2d* shape), (out, shape), kAllocArray,
                arrays, assay::gpu::number(*out), bytes_of(shape), assay::gpu::current_line())
ASSAY_ALLOCATOR(cuArray3DCreate_v2, (void** out, const Array3d* shape), (out, shape), kAllocArray,
                arrays, assay::gpu::number(*out), bytes_of(shape), assay::gpu::current_line())
ASSAY_ALLOCATOR(cuMipmappedArrayCreate, (void** out, const Array3d* shape, unsigned levels),
                (out, shape, levels), kAllocArray, arrays, assay::gpu::number(*out),
                bytes_of(shape), assay::gpu::current_line())
ASSAY_ALLOCATOR(cuMemHostAlloc, (void** out, std::size_t size, unsigned flags), (out, size, flags),
                kAllocHost, host_pointers, assay::gpu::number(*out), size, assay::wire::kGpuDevices)
ASSAY_ALLOCATOR(cuMemAllocHost_v2, (void** out, std::size_t size), (out, size), kAllocHost,
                host_pointers, assay::gpu::number(*out), size, assay::wire::kGpuDevices)

ASSAY_EXPORTED int cuMemCreate(std::uint64_t* out, std::size_t size,
                               const assay::gpu::Properties* properties, std::uint64_t flags) {
  ASSAY_REAL(cuMemCreate);
  const int result = next(out, size, properties, flags);
  constexpr int kOnDevice = 1;
  const bool on_device = properties != nullptr && properties->location_type == kOnDevice;
  assay::gpu::allocated(
      result, GpuQuantity::kAllocVirtual, assay::gpu::handles, result == 0 ? *out : 0, size,
      on_device ? assay::gpu::line_of(properties->location) : assay::wire::kGpuDevices);
  return result;
}

// The memory is there when the graph runs; its address is freed by another node, or by hand.
ASSAY_EXPORTED int cuGraphAddMemAllocNode(void** node, void* graph, const void* dependencies,
                                          std::size_t number,
                                          assay::gpu::AllocationNode* parameters) {
  ASSAY_REAL(cuGraphAddMemAllocNode);
  const int result = next(node, graph, dependencies, number, parameters);
  if (parameters != nullptr) {
    assay::gpu::count(result == 0 ? GpuQuantity::kAllocGraph : GpuQuantity::kRefused,
                      parameters->bytes);
  }
  return result;
}

#define ASSAY_FREE(symbol, parameters, arguments, map, key)                         \
  ASSAY_EXPORTED int symbol parameters {                                            \
    ASSAY_REAL(symbol);                                                             \
    return assay::gpu::freed(assay::gpu::map, key, [&] { return next arguments; }); \
  }
ASSAY_FREE(cuMemFree_v2, (std::uint64_t address), (address), pointers, address)
ASSAY_FREE(cuMemFreeAsync, (std::uint64_t address, void* stream), (address, stream), pointers,
           address)
ASSAY_FREE(cuMemFreeAsync_ptsz, (std::uint64_t address, void* stream), (address, stream), pointers,
           address)
ASSAY_FREE(cuMemRelease, (std::uint64_t handle), (handle), handles, handle)
ASSAY_FREE(cuArrayDestroy, (void* array), (array), arrays, assay::gpu::number(array))
ASSAY_FREE(cuMipmappedArrayDestroy, (void* array), (array), arrays, assay::gpu::number(array))
ASSAY_FREE(cuMemFreeHost, (void* memory), (memory), host_pointers, assay::gpu::number(memory))
}
#undef ASSAY_ALLOCATOR
#undef ASSAY_FREE
