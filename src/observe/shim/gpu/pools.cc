// Memory pools keep what was freed, for the next one who asks, and nobody else can have it. So
// where there is a limit, a pool counts with what it has reserved, as the driver says it; without
// one, with what is allocated from it.
//
//   an allocation ── reserve what it wants beyond what pools keep ── driver ── how much have they
//   now? a free ── nothing yet: the pool may give it back when somebody waits for the device, so
//   then
//
// What pools keep is asked for when it may have changed, and given back to the driver before
// anybody of this process is refused.
#include "observe/shim/gpu/captures.h"
#include "observe/shim/gpu/limits.h"
#include "observe/shim/gpu/spin_lock.h"

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

struct Pool {
  void* handle;
  std::uint32_t line;  // kGpuDevices: not on a device
};
// That were made, or are of other places; memory of what does not fit counts like any other.
constexpr std::size_t kPools = 64;
constinit SpinLock lock;  // also while one is asked: it must not be destroyed then
constinit Pool seen[kPools] = {};
constinit std::atomic<void*> own[kGpuDevices] = {};  // the devices'
// Of this process, by device: what is allocated from pools, and what they are charged with.
constinit std::atomic<std::int64_t> live[kGpuDevices] = {};
constinit std::atomic<std::uint64_t> charged[kGpuDevices] = {};
constinit std::atomic<bool> freed[kGpuDevices] = {};  // since somebody last asked
// A pool was destroyed whose memory was in use: it is there until that is freed.
constinit std::atomic<bool> orphaned[kGpuDevices] = {};

bool find(const void* pool, std::uint32_t& line) {
  for (const Pool& known : seen) {
    if (known.handle != pool) continue;
    line = known.line;
    return true;
  }
  for (std::uint32_t at = 0; at < kGpuDevices; ++at) {
    if (own[at].load(std::memory_order_relaxed) != pool) continue;
    line = at;
    return true;
  }
  return false;
}

// A device's own pool is nobody's to make: known when it is first used.
bool find_own(void* pool, std::uint32_t& line) {
  constexpr int kMostDevices = 64;
  void* found = nullptr;
  for (int device = 0; device < kMostDevices && helpers.default_pool != nullptr; ++device) {
    if (helpers.default_pool(&found, device) != 0) break;
    if (found != pool) continue;
    line = line_of(device);
    if (line < kGpuDevices) own[line].store(found, std::memory_order_relaxed);
    return true;
  }
  return false;
}

void know_own(std::uint32_t line) {
  if (own[line].load(std::memory_order_relaxed) != nullptr) return;
  void* found = nullptr;
  const int device = ordinal_of(line);
  if (device < 0 || helpers.default_pool == nullptr || helpers.default_pool(&found, device) != 0) {
    return;
  }
  own[line].store(found, std::memory_order_relaxed);
}

std::uint64_t live_on(std::uint32_t line) {
  const std::int64_t bytes = live[line].load(std::memory_order_relaxed);
  return bytes > 0 ? static_cast<std::uint64_t>(bytes) : 0;
}

bool counts_reserved(std::uint32_t line) {
  return helpers.pool_attribute != nullptr && limit_of(line) != 0;
}

// Of all pools of the device. False: the driver does not say.
enum Attribute : int { kReservedNow = 5, kUsedNow = 7 };  // CU_MEMPOOL_ATTR_…_MEM_CURRENT
bool ask(std::uint32_t line, Attribute what, std::uint64_t& sum) {
  sum = 0;
  const auto add = [&](void* pool) {
    std::uint64_t bytes = 0;
    if (pool == nullptr) return true;
    const bool said = helpers.pool_attribute(pool, what, &bytes) == 0;
    sum += bytes;
    return said;
  };
  bool said = add(own[line].load(std::memory_order_relaxed));
  for (const Pool& pool : seen) {
    if (pool.line == line) said = add(pool.handle) && said;
  }
  return said;
}

bool ask_charge(std::uint32_t line, std::uint64_t& bytes) {
  const HarmlessToCaptures harmless;
  if (!ask(line, kReservedNow, bytes)) return false;
  std::uint64_t used = 0;
  if (orphaned[line].load(std::memory_order_relaxed) && ask(line, kUsedNow, used) &&
      live_on(line) > used) {
    bytes += live_on(line) - used;
  }
  return true;
}

// Charges what there is now. `more` was reserved for it already. With the lock.
void settle(std::uint32_t line, std::uint64_t more) {
  freed[line].store(false, std::memory_order_relaxed);
  std::uint64_t now = 0;
  if (!counts_reserved(line) || !ask_charge(line, now)) now = live_on(line);
  const std::uint64_t before = charged[line].exchange(now, std::memory_order_relaxed) + more;
  if (now > before) add_anyway(line, now - before);
  if (now < before) give_back(line, before - now);
}

}  // namespace

constinit std::atomic<bool> pools_freed{false};

bool pool_of(void* pool, Place& place) {
  bool known = true;
  if (pool == nullptr) {
    // The device's current pool is its own, or one that was made, and is known.
    if (place.line < kGpuDevices && counts_reserved(place.line)) know_own(place.line);
  } else {
    lock.lock();
    known = find(pool, place.line) || find_own(pool, place.line);
    lock.unlock();
  }
  if (known) place.context |= kFromPool;
  return known;
}

bool reserve_from_pool(std::uint32_t& line, std::uint64_t bytes, std::uint64_t& more) {
  // What a pool keeps is charged already.
  const auto beyond_kept = [&] {
    if (line >= kGpuDevices) return bytes;
    const std::uint64_t charge = charged[line].load(std::memory_order_relaxed);
    const std::uint64_t used = live_on(line);
    const std::uint64_t kept = charge > used ? charge - used : 0;
    return bytes > kept ? bytes - kept : 0;
  };
  more = beyond_kept();
  std::uint32_t at = line;
  if (more == 0) return true;
  bool done = try_reserve(at, more);
  if (!done) {
    make_room(line);
    more = beyond_kept();
    done = try_reserve(at, more);
  }
  if (done && at >= kGpuDevices) line = at;
  return done;
}

void pool_gave(std::uint32_t line, std::uint64_t bytes, std::uint64_t more) {
  if (line >= kGpuDevices) return;
  lock.lock();
  live[line].fetch_add(static_cast<std::int64_t>(bytes), std::memory_order_relaxed);
  settle(line, more);
  lock.unlock();
  // What it kept may have been in pieces of which none would do.
  const std::uint64_t limit = limit_of(line);
  if (limit != 0 && used_of(line) > limit) trim_pools(line);
}

void pool_took_back(std::uint32_t line, std::uint64_t bytes) {
  if (line >= kGpuDevices) return;
  live[line].fetch_sub(static_cast<std::int64_t>(bytes), std::memory_order_relaxed);
  if (!counts_reserved(line)) return settle_pools(line);
  freed[line].store(true, std::memory_order_relaxed);
  pools_freed.store(true, std::memory_order_relaxed);
}

void settle_pools(std::uint32_t line) {
  if (line >= kGpuDevices) return;
  if (charged[line].load(std::memory_order_relaxed) == 0 && live_on(line) == 0) return;
  lock.lock();
  settle(line, 0);
  lock.unlock();
}

void settle_all_freed() {
  pools_freed.store(false, std::memory_order_relaxed);
  for (std::uint32_t line = 0; line < kGpuDevices; ++line) {
    if (freed[line].load(std::memory_order_relaxed)) settle_pools(line);
  }
}

bool trim_pools(std::uint32_t line) {
  const std::uint64_t before = charged[line].load(std::memory_order_relaxed);
  if (before == 0) return false;
  lock.lock();
  if (counts_reserved(line)) {
    const HarmlessToCaptures harmless;
    auto* const trim = real<int(void*, std::size_t)>(assay_gpu_real_cuMemPoolTrimTo);
    if (void* pool = own[line].load(std::memory_order_relaxed); pool != nullptr) trim(pool, 0);
    for (const Pool& pool : seen) {
      if (pool.handle != nullptr && pool.line == line) trim(pool.handle, 0);
    }
  }
  settle(line, 0);
  lock.unlock();
  return charged[line].load(std::memory_order_relaxed) < before;
}

void forget_pools() {
  lock.reset();
  for (Pool& pool : seen) pool = {};
  for (auto& bytes : live) bytes.store(0, std::memory_order_relaxed);
  for (auto& bytes : charged) bytes.store(0, std::memory_order_relaxed);
  for (auto& pool : own) pool.store(nullptr, std::memory_order_relaxed);
  for (auto& some : freed) some.store(false, std::memory_order_relaxed);
  for (auto& some : orphaned) some.store(false, std::memory_order_relaxed);
}

namespace {

void settle_all_pools() {
  for (std::uint32_t line = 0; line < kGpuDevices; ++line) settle_pools(line);
}

// Memory that moves has no place of its own: it counts where it is asked for.
Result pool_known(Result result, void* const* pool, const Location* location) {
  if (result != 0 || pool == nullptr || location == nullptr || location->type == kUnspecified) {
    return result;
  }
  const std::uint32_t line =
      location->type == kOnDevice ? line_of(location->number) : std::uint32_t{kGpuDevices};
  std::uint32_t before = kGpuDevices;
  lock.lock();
  if (!find(*pool, before)) {
    for (Pool& place : seen) {
      if (place.handle != nullptr) continue;
      place = {*pool, line};
      break;
    }
  }
  lock.unlock();
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
// Pools of other places than devices, which nobody makes either.
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

// Forgotten before it is gone, for another may get its address.
ASSAY_EXPORTED int cuMemPoolDestroy(void* pool) {
  ASSAY_REAL(cuMemPoolDestroy);
  assay::gpu::lock.lock();
  for (assay::gpu::Pool& known : assay::gpu::seen) {
    if (known.handle != pool || pool == nullptr) continue;
    std::uint64_t used = 0;
    const assay::gpu::HarmlessToCaptures harmless;
    if (known.line < assay::wire::kGpuDevices &&
        (assay::gpu::helpers.pool_attribute == nullptr ||
         assay::gpu::helpers.pool_attribute(pool, assay::gpu::kUsedNow, &used) != 0 || used != 0)) {
      assay::gpu::orphaned[known.line].store(true, std::memory_order_relaxed);
    }
    known = {};
  }
  assay::gpu::lock.unlock();
  const int result = next(pool);
  assay::gpu::settle_all_pools();
  return result;
}
}
