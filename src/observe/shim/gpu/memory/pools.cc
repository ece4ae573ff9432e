// Memory pools keep freed memory for later allocations, and no other process can use it. So with a
// limit, a pool counts with what it has reserved, as the driver reports it; without one, with what
// is allocated from it.
//
//   allocation ── reserve what it needs beyond what pools hold ── driver ── query pools
//   free ── nothing yet: it may be released at the next synchronization ── query pools
//
// Before an allocation of this process is refused, its pools are trimmed.
#include "observe/shim/gpu/memory/pools.h"

#include "observe/shim/gpu/lookup/driver.h"
#include "observe/shim/gpu/memory/limits.h"
#include "observe/shim/gpu/memory/pool_list.h"

namespace assay::gpu {
namespace {

using wire::kGpuDevices;

enum LocationType : int { kUnspecified = 0, kOnDevice = 1 };  // CUmemLocationType
struct Location {
  int type, number;
};
// CUmemPoolProps, as far as we read it
struct PoolProperties {
  int type, handle_types;
  Location location;
};

// Of this process, by device: bytes allocated from pools, including allocations in progress; bytes
// charged; and bytes reserved in addition for allocations in progress.
constinit std::atomic<std::int64_t> live[kGpuDevices] = {};
constinit std::atomic<std::uint64_t> charged[kGpuDevices] = {};
constinit std::atomic<std::uint64_t> pending[kGpuDevices] = {};
constinit std::atomic<bool> freed[kGpuDevices] = {};  // since they were last settled
// Memory of destroyed pools that is still in use.
constinit std::atomic<bool> orphaned[kGpuDevices] = {};

std::uint64_t live_on(std::uint32_t device_index) {
  const std::int64_t bytes = live[device_index].load(std::memory_order_relaxed);
  return bytes > 0 ? static_cast<std::uint64_t>(bytes) : 0;
}

bool counts_reserved(std::uint32_t device_index) {
  return helpers.pool_attribute != nullptr && limit_of(device_index) != 0;
}

// Of all pools of the device. False: the driver does not report it.
enum Attribute : int { kReservedNow = 5, kUsedNow = 7 };  // CU_MEMPOOL_ATTR_…_MEM_CURRENT
bool query_pools(std::uint32_t device_index, Attribute what, std::uint64_t& sum) {
  bool succeeded = true;
  sum = 0;
  pools.each(device_index, [&](void* pool) {
    std::uint64_t bytes = 0;
    succeeded = helpers.pool_attribute(pool, what, &bytes) == 0 && succeeded;
    sum += bytes;
  });
  return succeeded;
}

bool query_charge(std::uint32_t device_index, std::uint64_t& bytes) {
  const RelaxedCaptureMode harmless;
  if (!query_pools(device_index, kReservedNow, bytes)) return false;
  std::uint64_t used = 0;
  if (orphaned[device_index].load(std::memory_order_relaxed) &&
      query_pools(device_index, kUsedNow, used) && live_on(device_index) > used) {
    bytes += live_on(device_index) - used;  // too much while another thread is allocating
  }
  return true;
}

// Charges the current amount. `more` was reserved for an allocation that has since succeeded or
// failed. Needs the lock.
void settle(std::uint32_t device_index, std::uint64_t more) {
  freed[device_index].store(false, std::memory_order_relaxed);
  std::uint64_t now = 0;
  if (!counts_reserved(device_index) || !query_charge(device_index, now)) now = 0;
  if (live_on(device_index) > now) now = live_on(device_index);  // includes allocations in progress
  const std::uint64_t others =
      pending[device_index].fetch_sub(more, std::memory_order_relaxed) - more;
  now -= others < now ? others : now;
  const std::uint64_t before =
      charged[device_index].exchange(now, std::memory_order_relaxed) + more;
  if (now > before) add_unconditionally(device_index, now - before);
  if (now < before) give_back(device_index, before - now);
}

void settle_locked(std::uint32_t device_index, std::uint64_t more) {
  pools.lock.lock();
  settle(device_index, more);
  pools.lock.unlock();
}

bool is_beyond_limit(std::uint32_t device_index) {
  const std::uint64_t limit = limit_of(device_index);
  return limit != 0 && used_of(device_index) > limit;
}

// Reserves what pools do not hold already: held memory is already charged, and only one of two
// threads can use it.
bool claim(std::uint32_t& device_index, std::uint64_t bytes, std::uint64_t& more) {
  std::uint32_t at = device_index;
  pools.lock.lock();
  const std::uint64_t used = live_on(device_index);
  const std::uint64_t charge = charged[device_index].load(std::memory_order_relaxed);
  const std::uint64_t kept = charge > used ? charge - used : 0;
  more = bytes > kept ? bytes - kept : 0;
  const bool done = more == 0 ? !is_beyond_limit(device_index) : try_reserve(at, more);
  if (done && at < kGpuDevices) {
    live[device_index].fetch_add(static_cast<std::int64_t>(bytes), std::memory_order_relaxed);
    pending[device_index].fetch_add(more, std::memory_order_relaxed);
  }
  pools.lock.unlock();
  if (done) device_index = at;
  return done;
}

}  // namespace

constinit std::atomic<bool> pools_freed{false};

bool pool_of(void* pool, MemoryOrigin& place) {
  bool known = true;
  if (pool == nullptr) {
    // The device's current pool is its default pool or one that was created, and is known.
    if (place.device_index < kGpuDevices && counts_reserved(place.device_index))
      pools.know_own(place.device_index);
  } else {
    pools.lock.lock();
    known = pools.find(pool, place.device_index);
    pools.lock.unlock();
  }
  if (known) place.context |= kFromPool;
  return known;
}

bool reserve_from_pool(std::uint32_t& device_index, std::uint64_t bytes, std::uint64_t& more) {
  more = 0;
  if (device_index >= kGpuDevices) return true;
  refresh_accounts(device_index);
  if (claim(device_index, bytes, more)) return true;
  release_unused(device_index);
  return claim(device_index, bytes, more);
}

void pool_gave(std::uint32_t device_index, std::uint64_t more) {
  if (device_index >= kGpuDevices) return;
  settle_locked(device_index, more);
  // The free memory in the pools may have been too fragmented to use.
  if (is_beyond_limit(device_index)) trim_pools(device_index);
}

void pool_refused(std::uint32_t device_index, std::uint64_t bytes, std::uint64_t more) {
  if (device_index >= kGpuDevices) return;
  live[device_index].fetch_sub(static_cast<std::int64_t>(bytes), std::memory_order_relaxed);
  settle_locked(device_index, more);
}

void pool_took_back(std::uint32_t device_index, std::uint64_t bytes) {
  if (device_index >= kGpuDevices) return;
  live[device_index].fetch_sub(static_cast<std::int64_t>(bytes), std::memory_order_relaxed);
  if (!counts_reserved(device_index)) return settle_pools(device_index);
  freed[device_index].store(true, std::memory_order_relaxed);
  pools_freed.store(true, std::memory_order_relaxed);
}

void settle_pools(std::uint32_t device_index) {
  if (device_index >= kGpuDevices) return;
  if (charged[device_index].load(std::memory_order_relaxed) == 0 && live_on(device_index) == 0)
    return;
  settle_locked(device_index, 0);
}

void settle_all_freed() {
  pools_freed.store(false, std::memory_order_relaxed);
  for (std::uint32_t device_index = 0; device_index < kGpuDevices; ++device_index) {
    if (freed[device_index].load(std::memory_order_relaxed)) settle_pools(device_index);
  }
}

bool trim_pools(std::uint32_t device_index) {
  const std::uint64_t before = charged[device_index].load(std::memory_order_relaxed);
  if (before == 0) return false;
  pools.lock.lock();
  if (counts_reserved(device_index)) {
    const RelaxedCaptureMode harmless;
    auto* const trim = real<int(void*, std::size_t)>(assay_gpu_real_cuMemPoolTrimTo);
    pools.each(device_index, [&](void* pool) { trim(pool, 0); });
  }
  settle(device_index, 0);
  pools.lock.unlock();
  return charged[device_index].load(std::memory_order_relaxed) < before;
}

void forget_pools() {
  pools.forget();
  for (auto& bytes : live) bytes.store(0, std::memory_order_relaxed);
  for (auto& bytes : charged) bytes.store(0, std::memory_order_relaxed);
  for (auto& bytes : pending) bytes.store(0, std::memory_order_relaxed);
  for (auto& some : freed) some.store(false, std::memory_order_relaxed);
  for (auto& some : orphaned) some.store(false, std::memory_order_relaxed);
}

namespace {

// Memory in use of a pool that is being destroyed.
void note_orphans(void* pool, std::uint32_t device_index) {
  std::uint64_t used = 0;
  const RelaxedCaptureMode harmless;
  const bool succeeded =
      helpers.pool_attribute != nullptr && helpers.pool_attribute(pool, kUsedNow, &used) == 0;
  if (!succeeded || used != 0) orphaned[device_index].store(true, std::memory_order_relaxed);
}

void settle_all_pools() {
  for (std::uint32_t device_index = 0; device_index < kGpuDevices; ++device_index)
    settle_pools(device_index);
}

// Managed memory has no fixed place: it counts where it was allocated.
Result pool_known(Result result, void* const* pool, const Location* location) {
  if (result != 0 || pool == nullptr || location == nullptr || location->type == kUnspecified) {
    return result;
  }
  const std::uint32_t device_index =
      location->type == kOnDevice ? device_index_of(location->number) : std::uint32_t{kGpuDevices};
  std::uint32_t before = kGpuDevices;
  pools.lock.lock();
  if (!pools.find(*pool, before)) pools.add(*pool, device_index);
  pools.lock.unlock();
  return result;
}

}  // namespace
}  // namespace assay::gpu

extern "C" {

ASSAY_EXPORTED int cuMemPoolCreate(void** pool, const assay::gpu::PoolProperties* properties) {
  ASSAY_REAL(cuMemPoolCreate);
  return assay::gpu::pool_known(next(pool, properties), pool,
                                properties != nullptr ? &properties->location : nullptr);
}
// Default and current pools of a location, which the program did not create.
ASSAY_EXPORTED int cuMemGetDefaultMemPool(void** pool, const assay::gpu::Location* location,
                                          int type) {
  ASSAY_REAL(cuMemGetDefaultMemPool);
  return assay::gpu::pool_known(next(pool, location, type), pool, location);
}
ASSAY_EXPORTED int cuMemGetMemPool(void** pool, const assay::gpu::Location* location, int type) {
  ASSAY_REAL(cuMemGetMemPool);
  return assay::gpu::pool_known(next(pool, location, type), pool, location);
}

ASSAY_EXPORTED int cuMemPoolTrimTo(void* pool, std::size_t keep) {
  ASSAY_REAL(cuMemPoolTrimTo);
  const int result = next(pool, keep);
  assay::gpu::settle_all_pools();
  return result;
}

// Removed before it is destroyed, because another pool may get its address.
ASSAY_EXPORTED int cuMemPoolDestroy(void* pool) {
  ASSAY_REAL(cuMemPoolDestroy);
  std::uint32_t device_index = assay::wire::kGpuDevices;
  assay::gpu::pools.lock.lock();
  if (assay::gpu::pools.remove(pool, device_index) && device_index < assay::wire::kGpuDevices) {
    assay::gpu::note_orphans(pool, device_index);
  }
  assay::gpu::pools.lock.unlock();
  const int result = next(pool);
  assay::gpu::settle_all_pools();
  return result;
}
}
