// Allocations and frees, by every allocator but cuMemCreate (virtual.cc): reserved before the
// driver is called, returned if it refuses; counted by calls, bytes and live bytes per device.
#include "observe/shim/gpu/lookup/driver.h"
#include "observe/shim/gpu/memory/devices.h"
#include "observe/shim/gpu/memory/limits.h"
#include "observe/shim/gpu/memory/pools.h"
#include "observe/shim/gpu/memory/shapes.h"
#include "observe/shim/gpu/region/region.h"
#include "observe/shim/gpu/size_map.h"

namespace assay::gpu {
namespace {

void forget_allocation(const SizeMapValue& known) {
  if ((known.second & kFromPool) != 0) {
    pool_took_back(known.first, known.size);
  } else {
    give_back(known.first, known.size);
  }
}

// An address that is allocated again was freed in some way that was not observed.
void keep(SizeMap& in, std::uint64_t key, const SizeMapValue& known) {
  SizeMapValue before;
  note_peak(known.first);
  if (!in.insert(key, known, &before)) return forget_allocation(known);
  if (before.size != 0) forget_allocation(before);
}

// `call` calls the driver, `key` is the address or handle it returned, `size` its bytes.
template <typename Call, typename Key, typename Size>
Result allocate(GpuQuantity quantity, SizeMap& in, MemoryOrigin place, std::uint64_t bytes,
                Call call, Key key, Size size) {
  if (!reserve(place.device_index, bytes)) {
    count(GpuQuantity::kRefused, bytes);
    return kOutOfMemory;
  }
  const Result result = call();
  if (result != 0) {
    give_back(place.device_index, bytes);
    count(GpuQuantity::kRefused, bytes);
    return result;
  }
  const std::uint64_t got = size();
  if (got > bytes) add_unconditionally(place.device_index, got - bytes);
  if (got < bytes) give_back(place.device_index, bytes - got);
  count(quantity, got);
  keep(in, key(), {got, place.device_index, place.context});
  return result;
}

// An allocation in a captured stream becomes a node of the graph: it is reserved when that is
// launched (graph_memory.cc).
bool is_captured(Result (*is_capturing)(void*, int*), void* stream) {
  int capturing = 0;
  return region() != nullptr && is_capturing != nullptr && is_capturing(stream, &capturing) == 0 &&
         capturing == 1;
}

template <typename Call>
Result allocate_from_pool(Result (*is_capturing)(void*, int*), void* stream, std::uint64_t* out,
                          std::uint64_t bytes, void* pool, Call call) {
  if (is_captured(is_capturing, stream)) {
    const Result result = call();
    count(result == 0 ? GpuQuantity::kAllocGraph : GpuQuantity::kRefused, bytes);
    return result;
  }
  MemoryOrigin place = current_origin();
  if (!pool_of(pool, place)) {
    return allocate(
        GpuQuantity::kAllocAsync, pointers, place, bytes, call, [&] { return *out; },
        [&] { return bytes; });
  }
  std::uint64_t more = 0;
  const bool fits = reserve_from_pool(place.device_index, bytes, more);
  const Result result = fits ? call() : kOutOfMemory;
  if (result != 0) {
    if (fits) pool_refused(place.device_index, bytes, more);
    count(GpuQuantity::kRefused, bytes);
    return result;
  }
  pool_gave(place.device_index, more);
  count(GpuQuantity::kAllocAsync, bytes);
  keep(pointers, *out, {bytes, place.device_index, place.context});
  return result;
}

// Removed before the driver is called: another thread may get the same address at once. Unknown
// addresses are left to the driver.
template <typename Free>
Result freed(SizeMap& in, std::uint64_t key, Free free) {
  SizeMapValue known;
  const bool found = in.take(key, known);
  const Result result = free();
  if (result != 0) {
    if (found) in.insert(key, known);
    return result;
  }
  count(GpuQuantity::kFree, found ? known.size : 0);
  if (found) forget_allocation(known);
  return result;
}
// cuMemFree synchronizes with the device.
template <typename Free>
Result freed_at_once(SizeMap& in, std::uint64_t key, Free free) {
  const Result result = freed(in, key, free);
  settle_freed_pools();
  return result;
}

std::uint64_t number(const void* pointer) {
  return reinterpret_cast<std::uint64_t>(pointer);
}

// CUDA_MEM_ALLOC_NODE_PARAMS
struct AllocationNode {
  unsigned char before[104];
  std::size_t bytes;
  std::uint64_t address;
};

}  // namespace

// Pools belong to devices, not contexts: their memory stays until it is freed.
void forget_context(std::uint32_t context) {
  for (SizeMap* map : {&pointers, &arrays}) map->take_all(context, forget_allocation);
  forget_origins();
}

}  // namespace assay::gpu

using assay::gpu::Array2d;
using assay::gpu::Array3d;
using assay::gpu::GpuQuantity;

#define ASSAY_ALLOCATOR(symbol, parameters, arguments, quantity, map, key, bytes, size) \
  ASSAY_EXPORTED int symbol parameters {                                                \
    ASSAY_REAL(symbol);                                                                 \
    return assay::gpu::allocate(                                                        \
        GpuQuantity::quantity, assay::gpu::map, assay::gpu::current_origin(), bytes,    \
        [&] { return next arguments; }, [&] { return key; },                            \
        [&]() -> std::uint64_t { return size; });                                       \
  }
#define ASSAY_POOL_ALLOCATOR(symbol, is_capturing, pool, parameters, arguments)                \
  ASSAY_EXPORTED int symbol parameters {                                                       \
    ASSAY_REAL(symbol);                                                                        \
    return assay::gpu::allocate_from_pool(assay::gpu::helpers.is_capturing, stream, out, size, \
                                          pool, [&] { return next arguments; });               \
  }
#define ASSAY_HOST_ALLOCATOR(symbol, parameters, arguments)                       \
  ASSAY_EXPORTED int symbol parameters {                                          \
    ASSAY_REAL(symbol);                                                           \
    return assay::gpu::allocate(                                                  \
        GpuQuantity::kAllocHost, assay::gpu::host_pointers, {}, size,             \
        [&] { return next arguments; }, [&] { return assay::gpu::number(*out); }, \
        [&]() -> std::uint64_t { return size; });                                 \
  }

extern "C" {

ASSAY_ALLOCATOR(cuMemAlloc_v2, (std::uint64_t * out, std::size_t size), (out, size), kAllocDevice,
                pointers, *out, size, size)
ASSAY_ALLOCATOR(cuMemAllocManaged, (std::uint64_t * out, std::size_t size, unsigned flags),
                (out, size, flags), kAllocManaged, pointers, *out, size, size)
ASSAY_ALLOCATOR(cuMemAllocPitch_v2,
                (std::uint64_t * out, std::size_t* pitch, std::size_t width, std::size_t height,
                 unsigned element),
                (out, pitch, width, height, element), kAllocDevice, pointers, *out,
                assay::gpu::pitched(width, height), *pitch* height)
ASSAY_ALLOCATOR(cuArrayCreate_v2, (void** out, const Array2d* shape), (out, shape), kAllocArray,
                arrays, assay::gpu::number(*out), bytes_of(shape), bytes_of(shape))
ASSAY_ALLOCATOR(cuArray3DCreate_v2, (void** out, const Array3d* shape), (out, shape), kAllocArray,
                arrays, assay::gpu::number(*out), bytes_of(shape), bytes_of(shape))
ASSAY_ALLOCATOR(cuMipmappedArrayCreate, (void** out, const Array3d* shape, unsigned levels),
                (out, shape, levels), kAllocArray, arrays, assay::gpu::number(*out),
                bytes_of(shape, levels), bytes_of(shape, levels))
ASSAY_POOL_ALLOCATOR(cuMemAllocAsync, is_capturing, nullptr,
                     (std::uint64_t * out, std::size_t size, void* stream), (out, size, stream))
ASSAY_POOL_ALLOCATOR(cuMemAllocAsync_ptsz, is_capturing_per_thread, nullptr,
                     (std::uint64_t * out, std::size_t size, void* stream), (out, size, stream))
ASSAY_POOL_ALLOCATOR(cuMemAllocFromPoolAsync, is_capturing, pool,
                     (std::uint64_t * out, std::size_t size, void* pool, void* stream),
                     (out, size, pool, stream))
ASSAY_POOL_ALLOCATOR(cuMemAllocFromPoolAsync_ptsz, is_capturing_per_thread, pool,
                     (std::uint64_t * out, std::size_t size, void* pool, void* stream),
                     (out, size, pool, stream))
ASSAY_HOST_ALLOCATOR(cuMemHostAlloc, (void** out, std::size_t size, unsigned flags),
                     (out, size, flags))
ASSAY_HOST_ALLOCATOR(cuMemAllocHost_v2, (void** out, std::size_t size), (out, size))

// The memory exists while the graph runs; its address is freed by another node, or explicitly.
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

#define ASSAY_FREE_BY(freed, symbol, parameters, arguments, map, key)               \
  ASSAY_EXPORTED int symbol parameters {                                            \
    ASSAY_REAL(symbol);                                                             \
    return assay::gpu::freed(assay::gpu::map, key, [&] { return next arguments; }); \
  }
#define ASSAY_FREE(...) ASSAY_FREE_BY(freed, __VA_ARGS__)
ASSAY_FREE_BY(freed_at_once, cuMemFree_v2, (std::uint64_t address), (address), pointers, address)
ASSAY_FREE(cuMemFreeAsync, (std::uint64_t address, void* stream), (address, stream), pointers,
           address)
ASSAY_FREE(cuMemFreeAsync_ptsz, (std::uint64_t address, void* stream), (address, stream), pointers,
           address)
ASSAY_FREE(cuArrayDestroy, (void* array), (array), arrays, assay::gpu::number(array))
ASSAY_FREE(cuMipmappedArrayDestroy, (void* array), (array), arrays, assay::gpu::number(array))
ASSAY_FREE(cuMemFreeHost, (void* memory), (memory), host_pointers, assay::gpu::number(memory))
}
#undef ASSAY_ALLOCATOR
#undef ASSAY_POOL_ALLOCATOR
#undef ASSAY_HOST_ALLOCATOR
#undef ASSAY_FREE
#undef ASSAY_FREE_BY
