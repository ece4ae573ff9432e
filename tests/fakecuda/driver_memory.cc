// Memory: allocators, pools, mappings, arrays, host memory.
#include <cstdlib>
#include <cstring>

#include "driver_captures.h"

using namespace fakecuda;

namespace {

#ifdef FAKECUDA_BARE
int allocate(std::uint64_t* address, std::uint64_t size) {
  static std::atomic<std::uint64_t> next{0x7F00'0000'0000};
  *address = next.fetch_add((size + 511) & ~std::uint64_t{511}, std::memory_order_relaxed);
  return kOk;
}

int release(std::uint64_t) {
  return kOk;
}
#else
int allocate(std::uint64_t* address, std::uint64_t size) {
  return fake::Memory::the().allocate(address, size, physical(current_device), current_context);
}

int release(std::uint64_t address) {
  return fake::Memory::the().release(address);
}
#endif

int array(void** out, std::uint64_t bytes) {
  if (bytes == 0) {
    *out = reinterpret_cast<void*>(fake::Memory::the().address_in_graph(512));
    return kOk;
  }
  std::uint64_t address = 0;
  const int result = allocate(&address, bytes);
  if (result == kOk) *out = reinterpret_cast<void*>(address);
  return result;
}

struct ArrayShape {  // CUDA_ARRAY_DESCRIPTOR
  std::size_t width, height;
  int format;
  unsigned channels;
};
struct Array3dShape {  // CUDA_ARRAY3D_DESCRIPTOR
  std::size_t width, height, depth;
  int format;
  unsigned channels, flags;
};
std::size_t at_least_one(std::size_t value) {
  return value == 0 ? 1 : value;
}
// CUarray_format: 8 bits as 1 and 8, 16 as 2, 9 and 16, 32 as 3, 10 and 32. NV12 and BC1, which
// have twelve bits an element and four.
std::size_t format_bits(const Array3dShape& shape) {
  const int format = shape.format;
  if (format == 0xB0) return 12;
  if (format == 0x91) return 4;
  const bool normalised = format >= 0xC3 && format <= 0xC5;
  if (format == 2 || format == 9 || format == 16 || normalised) return 16 * shape.channels;
  return (format == 3 || format == 10 || format == 32 ? 32 : 8) * shape.channels;
}
// Sparse arrays and arrays mapped later use no memory of their own.
std::size_t bytes_of(const Array3dShape& shape) {
  if ((shape.flags & 0xC0U) != 0) return 0;
  return shape.width * at_least_one(shape.height) * at_least_one(shape.depth) * format_bits(shape) /
         8;
}

int allocate_from(void* pool, std::uint64_t* out, std::size_t size) {
  if (capturing != nullptr) {
    *out = fake::Memory::the().address_in_graph(size);
    return add_node(nullptr, capturing, 10, nullptr, size, 1, *out);
  }
  return fake::Memory::the().allocate_from(static_cast<fake::Memory::Pool*>(pool), out, size,
                                           physical(current_device), current_context);
}

}  // namespace

extern "C" {

// As in the real one, null is an invalid value.
int cuMemGetInfo_v2(std::size_t* free_bytes, std::size_t* total) {
  count(k_cuMemGetInfo_v2);
  if (free_bytes == nullptr || total == nullptr) return kInvalidValue;
  *total = fake::Memory::the().total();
  *free_bytes = *total - fake::Memory::used(physical(current_device));
  return kOk;
}

#define ALLOCATOR(symbol, parameters, address, size) \
  int symbol parameters {                            \
    count(k_##symbol);                               \
    UNSAFE();                                        \
    return allocate(address, size);                  \
  }
ALLOCATOR(cuMemAlloc_v2, (std::uint64_t * out, std::size_t size), out, size)
ALLOCATOR(cuMemAllocManaged, (std::uint64_t * out, std::size_t size, unsigned), out, size)

#define POOL_ALLOCATOR(symbol, parameters, pool) \
  int symbol parameters {                        \
    count(k_##symbol);                           \
    return allocate_from(pool, out, size);       \
  }
POOL_ALLOCATOR(cuMemAllocAsync, (std::uint64_t * out, std::size_t size, void*), nullptr)
POOL_ALLOCATOR(cuMemAllocAsync_ptsz, (std::uint64_t * out, std::size_t size, void*), nullptr)
POOL_ALLOCATOR(cuMemAllocFromPoolAsync, (std::uint64_t * out, std::size_t size, void* pool, void*),
               pool)
POOL_ALLOCATOR(cuMemAllocFromPoolAsync_ptsz,
               (std::uint64_t * out, std::size_t size, void* pool, void*), pool)
int cuDeviceGetDefaultMemPool(void** pool, int device) {
  count(k_cuDeviceGetDefaultMemPool);
  *pool = fake::Memory::the().default_pool(physical(device));
  return kOk;
}
int cuDeviceGetMemPool(void** pool, int device) {
  count(k_cuDeviceGetMemPool);
  *pool = fake::Memory::the().default_pool(physical(device));
  return kOk;
}
// CUmemPoolProps: the location's type is at 8, its number at 12.
int cuMemPoolCreate(void** pool, const int* properties) {
  count(k_cuMemPoolCreate);
  *pool = fake::Memory::the().new_pool(properties[2] == 1 ? physical(properties[3]) : -1);
  return kOk;
}
int cuMemGetDefaultMemPool(void** pool, const int* location, int) {
  count(k_cuMemGetDefaultMemPool);
  static fake::Memory::Pool* const host = fake::Memory::the().new_pool(-1);
  *pool = location[0] == 1 ? fake::Memory::the().default_pool(physical(location[1])) : host;
  return kOk;
}
int cuMemPoolSetAttribute(void* pool, int attribute, const void* value) {
  count(k_cuMemPoolSetAttribute);
  constexpr int kThreshold = 4;
  if (attribute != kThreshold) return kInvalidValue;
  std::memcpy(&static_cast<fake::Memory::Pool*>(pool)->threshold, value, sizeof(std::uint64_t));
  return kOk;
}
int cuMemPoolDestroy(void* pool) {
  count(k_cuMemPoolDestroy);
  fake::Memory::the().destroy_pool(static_cast<fake::Memory::Pool*>(pool));
  return kOk;
}
int cuMemPoolTrimTo(void* pool, std::size_t keep) {
  count(k_cuMemPoolTrimTo);
  UNSAFE();
  fake::Memory::the().trim(static_cast<fake::Memory::Pool*>(pool), keep);
  return kOk;
}
int cuMemPoolGetAttribute(void* pool, int attribute, void* value) {
  count(k_cuMemPoolGetAttribute);
  UNSAFE();
  const auto* of = static_cast<fake::Memory::Pool*>(pool);
  const std::uint64_t bytes = attribute == 5 ? of->reserved : of->used;
  std::memcpy(value, &bytes, sizeof bytes);
  return kOk;
}
// CUmemAllocationProp: the device is at 12.
int cuMemCreate(std::uint64_t* out, std::size_t size, const int* properties, std::uint64_t) {
  count(k_cuMemCreate);
  return fake::Memory::the().create(out, size, physical(properties[3]));
}
int cuMemMap(std::uint64_t address, std::size_t size, std::size_t, std::uint64_t handle,
             std::uint64_t) {
  count(k_cuMemMap);
  return fake::Memory::the().map(address, size, handle);
}
int cuMemUnmap(std::uint64_t address, std::size_t size) {
  count(k_cuMemUnmap);
  return fake::Memory::the().unmap(address, size);
}
int cuMemRetainAllocationHandle(std::uint64_t* handle, std::uint64_t address) {
  count(k_cuMemRetainAllocationHandle);
  return fake::Memory::the().retain(handle, address);
}
int cuMemRelease(std::uint64_t handle) {
  count(k_cuMemRelease);
  return fake::Memory::the().release_handle(handle);
}
int cuMemAllocPitch_v2(std::uint64_t* out, std::size_t* pitch, std::size_t width,
                       std::size_t height, unsigned) {
  count(k_cuMemAllocPitch_v2);
  *pitch = (width + 511) & ~std::size_t{511};
  return allocate(out, *pitch * height);
}
int cuArrayCreate_v2(void** out, const ArrayShape* shape) {
  count(k_cuArrayCreate_v2);
  return array(out, bytes_of({shape->width, shape->height, 0, shape->format, shape->channels, 0}));
}
int cuArray3DCreate_v2(void** out, const Array3dShape* shape) {
  count(k_cuArray3DCreate_v2);
  return array(out, bytes_of(*shape));
}
int cuMipmappedArrayCreate(void** out, const Array3dShape* shape, unsigned) {
  count(k_cuMipmappedArrayCreate);
  return array(out, bytes_of(*shape));
}
int cuMemHostAlloc(void** out, std::size_t size, unsigned) {
  count(k_cuMemHostAlloc);
  *out = std::malloc(size);
  return kOk;
}
int cuMemAllocHost_v2(void** out, std::size_t size) {
  count(k_cuMemAllocHost_v2);
  *out = std::malloc(size);
  return kOk;
}
int cuMemFreeHost(void* memory) {
  count(k_cuMemFreeHost);
  std::free(memory);
  return kOk;
}

#define RELEASE(symbol, parameters, address) \
  int symbol parameters {                    \
    count(k_##symbol);                       \
    return release(address);                 \
  }
RELEASE(cuMemFree_v2, (std::uint64_t address), address)
#define RELEASE_ASYNC(symbol)                                                                  \
  int symbol(std::uint64_t address, void*) {                                                   \
    count(k_##symbol);                                                                         \
    if (capturing != nullptr) return add_node(nullptr, capturing, 11, nullptr, 0, 1, address); \
    return release(address);                                                                   \
  }
RELEASE_ASYNC(cuMemFreeAsync)
RELEASE_ASYNC(cuMemFreeAsync_ptsz)
RELEASE(cuArrayDestroy, (void* handle), reinterpret_cast<std::uint64_t>(handle))
RELEASE(cuMipmappedArrayDestroy, (void* handle), reinterpret_cast<std::uint64_t>(handle))
}
