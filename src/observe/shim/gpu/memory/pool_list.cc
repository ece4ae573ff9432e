#include "observe/shim/gpu/memory/pool_list.h"

#include "observe/shim/gpu/lookup/driver.h"
#include "observe/shim/gpu/memory/devices.h"
#include "observe/shim/gpu/region/region.h"

namespace assay::gpu {

using wire::kGpuDevices;

constinit PoolList pools;

bool PoolList::find(void* pool, std::uint32_t& device_index) {
  for (const Pool& known : made_) {
    if (known.handle != pool) continue;
    device_index = known.device_index;
    return true;
  }
  for (std::uint32_t at = 0; at < kGpuDevices; ++at) {
    if (own_[at].load(std::memory_order_relaxed) != pool) continue;
    device_index = at;
    return true;
  }
  return find_own(pool, device_index);
}

bool PoolList::find_own(void* pool, std::uint32_t& device_index) {
  constexpr int kMostDevices = 64;
  void* found = nullptr;
  for (int device = 0; device < kMostDevices && helpers.default_pool != nullptr; ++device) {
    if (helpers.default_pool(&found, device) != 0) break;
    if (found != pool) continue;
    device_index = device_index_of(device);
    if (device_index < kGpuDevices) own_[device_index].store(found, std::memory_order_relaxed);
    return true;
  }
  return false;
}

void PoolList::add(void* pool, std::uint32_t device_index) {
  for (Pool& place : made_) {
    if (place.handle != nullptr) continue;
    place = {pool, device_index};
    return;
  }
}

bool PoolList::remove(void* pool, std::uint32_t& device_index) {
  for (Pool& known : made_) {
    if (pool == nullptr || known.handle != pool) continue;
    device_index = known.device_index;
    known = {};
    return true;
  }
  return false;
}

void PoolList::know_own(std::uint32_t device_index) {
  if (own_[device_index].load(std::memory_order_relaxed) != nullptr) return;
  void* found = nullptr;
  const int device = ordinal_of(device_index);
  if (device < 0 || helpers.default_pool == nullptr || helpers.default_pool(&found, device) != 0) {
    return;
  }
  own_[device_index].store(found, std::memory_order_relaxed);
}

void PoolList::forget() {
  lock.reset();
  for (Pool& pool : made_) pool = {};
  for (auto& pool : own_) pool.store(nullptr, std::memory_order_relaxed);
}

}  // namespace assay::gpu
