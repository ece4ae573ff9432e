// Memory pools keep what was freed, for the next one who asks. What counts against a limit is what
// is allocated; the rest is neither that nor overhead, and must be known to be left out.
#include "observe/shim/gpu/limits.h"
#include "observe/shim/gpu/spin_lock.h"

namespace assay::gpu {
namespace {

using wire::kGpuDevices;

struct Pool {
  void* handle;
  std::uint32_t line;
};
constexpr std::size_t kPools = 32;  // others than the devices' own; what does not fit is overhead
constinit SpinLock lock;            // also while one is asked: it must not be destroyed then
constinit Pool seen[kPools] = {};
constinit std::atomic<std::int64_t> live[kGpuDevices] = {};

std::uint64_t reserved_by(void* pool) {
  constexpr int kReservedNow = 5;  // CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT
  std::uint64_t bytes = 0;
  return pool != nullptr && helpers.pool_attribute(pool, kReservedNow, &bytes) == 0 ? bytes : 0;
}

}  // namespace

void pool_changed(std::uint32_t line, std::int64_t bytes) {
  if (line < kGpuDevices) live[line].fetch_add(bytes, std::memory_order_relaxed);
}

void pool_seen(void* pool, std::uint32_t line) {
  if (line >= kGpuDevices || limit_of(line) == 0) return;
  lock.lock();
  Pool* free = nullptr;
  bool known = false;
  for (Pool& place : seen) {
    known = known || place.handle == pool;
    if (free == nullptr && place.handle == nullptr) free = &place;
  }
  if (!known && free != nullptr) *free = {pool, line};
  lock.unlock();
}

PoolMemory pool_memory(std::uint32_t line) {
  const std::int64_t allocated = live[line].load(std::memory_order_relaxed);
  PoolMemory memory{allocated > 0 ? static_cast<std::uint64_t>(allocated) : 0, 0};
  const int device = ordinal_of(line);
  if (device < 0 || helpers.default_pool == nullptr || helpers.pool_attribute == nullptr) {
    memory.reserved = memory.allocated;
    return memory;
  }
  void* first = nullptr;
  void* current = nullptr;
  lock.lock();
  if (helpers.default_pool(&first, device) == 0) memory.reserved += reserved_by(first);
  if (helpers.current_pool != nullptr && helpers.current_pool(&current, device) == 0 &&
      current != first) {
    memory.reserved += reserved_by(current);
  }
  for (const Pool& pool : seen) {
    if (pool.handle == nullptr || pool.handle == first || pool.handle == current) continue;
    if (pool.line == line) memory.reserved += reserved_by(pool.handle);
  }
  lock.unlock();
  return memory;
}

void forget_pools() {
  lock.reset();
  for (Pool& pool : seen) pool = {};
  for (auto& bytes : live) bytes.store(0, std::memory_order_relaxed);
}

}  // namespace assay::gpu

extern "C" ASSAY_EXPORTED int cuMemPoolDestroy(void* pool) {
  ASSAY_REAL(cuMemPoolDestroy);
  assay::gpu::lock.lock();
  for (assay::gpu::Pool& known : assay::gpu::seen) {
    if (known.handle == pool) known = {};
  }
  assay::gpu::lock.unlock();
  return next(pool);
}
