#include "observe/shim/gpu/memory/pool_list.h"

#include "observe/shim/gpu/memory/limits.h"

namespace assay::gpu {

using wire::kGpuDevices;

constinit PoolList pools;

bool PoolList::find(void* pool, std::uint32_t& line) {
  for (const Pool& known : made_) {
    if (known.handle != pool) continue;
    line = known.line;
    return true;
  }
  for (std::uint32_t at = 0; at < kGpuDevices; ++at) {
    if (own_[at].load(std::memory_order_relaxed) != pool) continue;
    line = at;
    return true;
  }
  return find_own(pool, line);
}

bool PoolList::find_own(void* pool, std::uint32_t& line) {
  constexpr int kMostDevices = 64;
  void* found = nullptr;
  for (int device = 0; device < kMostDevices && helpers.default_pool != nullptr; ++device) {
    if (helpers.default_pool(&found, device) != 0) break;
    if (found != pool) continue;
    line = line_of(device);
    if (line < kGpuDevices) own_[line].store(found, std::memory_order_relaxed);
    return true;
  }
  return false;
}

void PoolList::add(void* pool, std::uint32_t line) {
  for (Pool& place : made_) {
    if (place.handle != nullptr) continue;
    place = {pool, line};
    return;
  }
}

bool PoolList::remove(void* pool, std::uint32_t& line) {
  for (Pool& known : made_) {
    if (pool == nullptr || known.handle != pool) continue;
    line = known.line;
    known = {};
    return true;
  }
  return false;
}

void PoolList::know_own(std::uint32_t line) {
  if (own_[line].load(std::memory_order_relaxed) != nullptr) return;
  void* found = nullptr;
  const int device = ordinal_of(line);
  if (device < 0 || helpers.default_pool == nullptr || helpers.default_pool(&found, device) != 0) {
    return;
  }
  own_[line].store(found, std::memory_order_relaxed);
}

void PoolList::forget() {
  lock.reset();
  for (Pool& pool : made_) pool = {};
  for (auto& pool : own_) pool.store(nullptr, std::memory_order_relaxed);
}

}  // namespace assay::gpu
