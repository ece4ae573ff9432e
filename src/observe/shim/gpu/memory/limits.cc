#include "observe/shim/gpu/memory/limits.h"

#include <time.h>

#include <cerrno>

#include "observe/shim/gpu/spin_lock.h"
#include "observe/wire/gpu_ledger.h"

namespace assay::gpu {
namespace {

using wire::GpuSlot;
using wire::kGpuDevices;
using wire::kGpuUnlimited;

// The ledger has one entry per slot: threads of this process take turns.
constinit SpinLock books;
constinit std::atomic<bool> warned{false};
constinit std::atomic<std::uint64_t> next_reclaim[kGpuDevices] = {};

// Adds `bytes` to what this process holds.
bool hold_more(std::uint32_t line, std::uint64_t bytes, std::uint64_t limit) {
  if (bytes > wire::kGpuMostBytes) return false;
  const auto mine = static_cast<std::size_t>(slot());
  GpuSlot& own = region()->slots[mine];
  books.lock();
  const std::uint64_t now = own.used[line].load(std::memory_order_relaxed) + bytes;
  const bool held = wire::hold(*region(), mine, line, now, limit);
  books.unlock();
  return held;
}

void hold_less(std::uint32_t line, std::uint64_t bytes) {
  const auto mine = static_cast<std::size_t>(slot());
  books.lock();
  const std::uint64_t now = region()->slots[mine].used[line].load(std::memory_order_relaxed);
  wire::hold(*region(), mine, line, now > bytes ? now - bytes : 0, kGpuUnlimited);
  books.unlock();
}

bool is_accountable(std::uint32_t line) {
  if (line >= kGpuDevices || region() == nullptr) return false;
  block();  // allocates a slot
  if (slot() >= 0) return true;
  if (!warned.exchange(true))
    log_line("no slot in the region: memory of this process is not limited");
  return false;
}

}  // namespace

std::uint64_t limit_of(std::uint32_t line) {
  if (line >= kGpuDevices || region() == nullptr) return 0;
  return wire::byte_limit(*region(), region()->devices[line]);
}

std::uint64_t used_of(std::uint32_t line) {
  return region()->devices[line].used.load(std::memory_order_relaxed);
}

std::uint64_t left_of(std::uint32_t line, std::uint64_t limit) {
  const std::uint64_t used = used_of(line);
  return used < limit ? limit - used : 0;
}

void reclaim_rate_limited(std::uint32_t line) {
  constexpr std::uint64_t kOften = 100;  // milliseconds between two reclaims
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
  const std::uint64_t now = static_cast<std::uint64_t>(time.tv_sec) * 1000 +
                            static_cast<std::uint64_t>(time.tv_nsec) / 1'000'000 + 1;
  std::uint64_t next = next_reclaim[line].load(std::memory_order_relaxed);
  if (now < next || !next_reclaim[line].compare_exchange_strong(next, now + kOften)) return;
  const int error = errno;
  reclaim_exited(line);
  errno = error;
}

void refresh_accounts(std::uint32_t line) {
  check_limits();  // a program that never synchronizes may have been given a share
  if (is_accountable(line) && limit_of(line) != 0) check_overhead(line);
}

bool try_reserve(std::uint32_t& line, std::uint64_t bytes) {
  if (bytes == 0 || !is_accountable(line)) {
    line = kGpuDevices;
    return true;
  }
  const std::uint64_t limit = limit_of(line);
  if (limit != 0) return hold_more(line, bytes, limit);
  if (!hold_more(line, bytes, kGpuUnlimited)) line = kGpuDevices;
  return true;
}

// Processes may have exited since, and pools may keep unused memory.
bool release_unused(std::uint32_t line) {
  const bool dead = reclaim_exited(line);
  return trim_pools(line) || dead;
}

bool reserve(std::uint32_t& line, std::uint64_t bytes) {
  if (bytes != 0) refresh_accounts(line);
  return try_reserve(line, bytes) || (release_unused(line) && try_reserve(line, bytes));
}

void note_peak(std::uint32_t line) {
  if (line >= kGpuDevices) return;
  GpuSlot& own = region()->slots[slot()];
  const std::uint64_t now = own.used[line].load(std::memory_order_relaxed);
  std::uint64_t peak = own.peak[line].load(std::memory_order_relaxed);
  while (now > peak &&
         !own.peak[line].compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
}

void add_unconditionally(std::uint32_t line, std::uint64_t bytes) {
  if (bytes == 0 || !is_accountable(line)) return;
  hold_more(line, bytes, kGpuUnlimited);
  note_peak(line);
}

void give_back(std::uint32_t line, std::uint64_t bytes) {
  if (bytes != 0 && is_accountable(line)) hold_less(line, bytes);
}

void set_overhead(std::uint32_t line, std::uint64_t bytes) {
  if (!is_accountable(line)) return;
  std::atomic<std::uint64_t>& overhead = region()->slots[slot()].overhead[line];
  const std::uint64_t before = overhead.exchange(bytes, std::memory_order_relaxed);
  if (bytes > before) {
    hold_more(line, bytes - before, kGpuUnlimited);
  } else if (bytes < before) {
    hold_less(line, before - bytes);
  }
}

void forget_limits() {
  books.reset();
  forget_overhead();
  forget_graph_memory();
}

}  // namespace assay::gpu
