#include "observe/shim/gpu/memory/limits.h"

#include <time.h>

#include <cerrno>

#include "observe/shim/gpu/memory/graph_memory.h"
#include "observe/shim/gpu/memory/overhead.h"
#include "observe/shim/gpu/memory/pools.h"
#include "observe/shim/gpu/region/region.h"
#include "observe/shim/gpu/spin_lock.h"
#include "observe/wire/gpu_ledger.h"

namespace assay::gpu {
namespace {

using wire::GpuSlot;
using wire::kGpuDevices;
using wire::kGpuUnlimited;

// The ledger has one entry per slot: threads of this process take turns.
constinit SpinLock ledger_lock;
constinit std::atomic<bool> warned{false};
constinit std::atomic<std::uint64_t> next_reclaim[kGpuDevices] = {};

// Adds `bytes` to what this process holds.
bool hold_more(std::uint32_t device_index, std::uint64_t bytes, std::uint64_t limit) {
  if (bytes > wire::kGpuMostBytes) return false;
  const auto mine = static_cast<std::size_t>(slot());
  GpuSlot& own = region()->slots[mine];
  ledger_lock.lock();
  const std::uint64_t now = own.used[device_index].load(std::memory_order_relaxed) + bytes;
  const bool held = wire::hold(*region(), mine, device_index, now, limit);
  ledger_lock.unlock();
  return held;
}

void hold_less(std::uint32_t device_index, std::uint64_t bytes) {
  const auto mine = static_cast<std::size_t>(slot());
  ledger_lock.lock();
  const std::uint64_t now =
      region()->slots[mine].used[device_index].load(std::memory_order_relaxed);
  wire::hold(*region(), mine, device_index, now > bytes ? now - bytes : 0, kGpuUnlimited);
  ledger_lock.unlock();
}

bool is_accountable(std::uint32_t device_index) {
  if (device_index >= kGpuDevices || region() == nullptr) return false;
  block();  // allocates a slot
  if (slot() >= 0) return true;
  if (!warned.exchange(true))
    log_line("no slot in the region: memory of this process is not limited");
  return false;
}

}  // namespace

std::uint64_t limit_of(std::uint32_t device_index) {
  if (device_index >= kGpuDevices || region() == nullptr) return 0;
  return wire::byte_limit(*region(), region()->devices[device_index]);
}

std::uint64_t used_of(std::uint32_t device_index) {
  return region()->devices[device_index].used.load(std::memory_order_relaxed);
}

std::uint64_t left_of(std::uint32_t device_index, std::uint64_t limit) {
  const std::uint64_t used = used_of(device_index);
  return used < limit ? limit - used : 0;
}

void reclaim_rate_limited(std::uint32_t device_index) {
  constexpr std::uint64_t kOften = 100;  // milliseconds between two reclaims
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
  const std::uint64_t now = static_cast<std::uint64_t>(time.tv_sec) * 1000 +
                            static_cast<std::uint64_t>(time.tv_nsec) / 1'000'000 + 1;
  std::uint64_t next = next_reclaim[device_index].load(std::memory_order_relaxed);
  if (now < next || !next_reclaim[device_index].compare_exchange_strong(next, now + kOften)) return;
  const int error = errno;
  reclaim_exited(device_index);
  errno = error;
}

void refresh_accounts(std::uint32_t device_index) {
  check_limits();  // a program that never synchronizes may have been given a share
  if (is_accountable(device_index) && limit_of(device_index) != 0) check_overhead(device_index);
}

bool try_reserve(std::uint32_t& device_index, std::uint64_t bytes) {
  if (bytes == 0 || !is_accountable(device_index)) {
    device_index = kGpuDevices;
    return true;
  }
  const std::uint64_t limit = limit_of(device_index);
  if (limit != 0) return hold_more(device_index, bytes, limit);
  if (!hold_more(device_index, bytes, kGpuUnlimited)) device_index = kGpuDevices;
  return true;
}

// Processes may have exited since, and pools may keep unused memory.
bool release_unused(std::uint32_t device_index) {
  const bool dead = reclaim_exited(device_index);
  return trim_pools(device_index) || dead;
}

bool reserve(std::uint32_t& device_index, std::uint64_t bytes) {
  if (bytes != 0) refresh_accounts(device_index);
  return try_reserve(device_index, bytes) ||
         (release_unused(device_index) && try_reserve(device_index, bytes));
}

void note_peak(std::uint32_t device_index) {
  if (device_index >= kGpuDevices) return;
  GpuSlot& own = region()->slots[slot()];
  const std::uint64_t now = own.used[device_index].load(std::memory_order_relaxed);
  std::uint64_t peak = own.peak[device_index].load(std::memory_order_relaxed);
  while (now > peak &&
         !own.peak[device_index].compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
}

void add_unconditionally(std::uint32_t device_index, std::uint64_t bytes) {
  if (bytes == 0 || !is_accountable(device_index)) return;
  hold_more(device_index, bytes, kGpuUnlimited);
  note_peak(device_index);
}

void give_back(std::uint32_t device_index, std::uint64_t bytes) {
  if (bytes != 0 && is_accountable(device_index)) hold_less(device_index, bytes);
}

void set_overhead(std::uint32_t device_index, std::uint64_t bytes) {
  if (!is_accountable(device_index)) return;
  std::atomic<std::uint64_t>& overhead = region()->slots[slot()].overhead[device_index];
  const std::uint64_t before = overhead.exchange(bytes, std::memory_order_relaxed);
  if (bytes > before) {
    hold_more(device_index, bytes - before, kGpuUnlimited);
  } else if (bytes < before) {
    hold_less(device_index, before - bytes);
  }
}

void forget_limits() {
  ledger_lock.reset();
  forget_overhead();
  forget_graph_memory();
}

}  // namespace assay::gpu
