// cuMemCreate and its handles. Such memory exists as long as it is referenced: by the handle that
// was created, by one from cuMemRetainAllocationHandle, or by a mapping. It is freed with the last
// of them; programs release handles while the memory is mapped.
#include "observe/shim/gpu/lookup/driver.h"
#include "observe/shim/gpu/memory/devices.h"
#include "observe/shim/gpu/memory/limits.h"
#include "observe/shim/gpu/region/region.h"
#include "observe/shim/gpu/size_map.h"

namespace assay::gpu {
namespace {

using wire::kGpuDevices;

// CUmemAllocationProp, as far as we read it
struct Properties {
  int type, handle_types;
  int location_type, location;
};

std::uint32_t device_index_for(const Properties* properties) {
  constexpr int kOnDevice = 1;
  return properties != nullptr && properties->location_type == kOnDevice
             ? device_index_of(properties->location)
             : kGpuDevices;
}

SizeMapValue mapping_of(std::uint64_t handle, std::uint64_t bytes) {
  return {bytes, static_cast<std::uint32_t>(handle), static_cast<std::uint32_t>(handle >> 32U)};
}
std::uint64_t handle_of(const SizeMapValue& mapping) {
  return (std::uint64_t{mapping.second} << 32U) | mapping.first;
}

// Drops a reference. Returns the bytes that are no longer referenced.
std::uint64_t release_handle(std::uint64_t handle) {
  SizeMapValue known;
  if (!handles.add(handle, -1, known) || known.second != 0) return 0;
  give_back(known.first, known.size);
  return known.size;
}

}  // namespace
}  // namespace assay::gpu

using assay::gpu::GpuQuantity;
using assay::gpu::SizeMapValue;

extern "C" {

ASSAY_EXPORTED int cuMemCreate(std::uint64_t* out, std::size_t size,
                               const assay::gpu::Properties* properties, std::uint64_t flags) {
  ASSAY_REAL(cuMemCreate);
  std::uint32_t device_index = assay::gpu::device_index_for(properties);
  if (!assay::gpu::reserve(device_index, size)) {
    assay::gpu::count(GpuQuantity::kRefused, size);
    return assay::gpu::kOutOfMemory;
  }
  const int result = next(out, size, properties, flags);
  if (result != 0) {
    assay::gpu::give_back(device_index, size);
    assay::gpu::count(GpuQuantity::kRefused, size);
    return result;
  }
  assay::gpu::count(GpuQuantity::kAllocVirtual, size);
  assay::gpu::note_peak(device_index);
  SizeMapValue before;
  if (!assay::gpu::handles.insert(*out, {size, device_index, 1}, &before)) {
    assay::gpu::give_back(device_index, size);
  } else if (before.size != 0) {
    assay::gpu::give_back(before.first, before.size);
  }
  return result;
}

ASSAY_EXPORTED int cuMemRetainAllocationHandle(std::uint64_t* handle, void* address) {
  ASSAY_REAL(cuMemRetainAllocationHandle);
  const int result = next(handle, address);
  SizeMapValue known;
  if (result == 0) assay::gpu::handles.add(*handle, 1, known);
  return result;
}

ASSAY_EXPORTED int cuMemMap(std::uint64_t address, std::size_t size, std::size_t offset,
                            std::uint64_t handle, std::uint64_t flags) {
  ASSAY_REAL(cuMemMap);
  const int result = next(address, size, offset, handle, flags);
  if (result != 0) return result;
  SizeMapValue known;
  // Imported handles are unknown: they are charged to the process that created them.
  assay::gpu::handles.add(handle, 1, known);
  if (!assay::gpu::mappings.insert(address, assay::gpu::mapping_of(handle, size))) {
    assay::gpu::release_handle(handle);
  }
  return result;
}

ASSAY_EXPORTED int cuMemUnmap(std::uint64_t address, std::size_t size) {
  ASSAY_REAL(cuMemUnmap);
  const int result = next(address, size);
  if (result != 0) return result;
  // Whole mappings, one after the other.
  SizeMapValue mapping;
  for (std::uint64_t at = address; at - address < size; at += mapping.size) {
    if (!assay::gpu::mappings.take(at, mapping) || mapping.size == 0) break;
    const std::uint64_t bytes = assay::gpu::release_handle(assay::gpu::handle_of(mapping));
    if (bytes != 0) assay::gpu::count(GpuQuantity::kFree, bytes, 0);
  }
  return result;
}

// Removed before the driver is called: another thread may get the same handle at once.
ASSAY_EXPORTED int cuMemRelease(std::uint64_t handle) {
  ASSAY_REAL(cuMemRelease);
  SizeMapValue known;
  const bool found = assay::gpu::handles.add(handle, -1, known);
  const int result = next(handle);
  if (result != 0) {
    if (found && known.second != 0) assay::gpu::handles.add(handle, 1, known);
    if (found && known.second == 0)
      assay::gpu::handles.insert(handle, {known.size, known.first, 1});
    return result;
  }
  const bool last = found && known.second == 0;
  assay::gpu::count(GpuQuantity::kFree, last ? known.size : 0);
  if (last) assay::gpu::give_back(known.first, known.size);
  return result;
}
}
