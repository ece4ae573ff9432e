// How many bytes of a device are held: GpuSlot::used by a process, GpuDevice::used by the run. To
// every living process the second is always the sum of the first, although a process may be killed
// between any two instructions.
//
//   a change:  number it ── write down what will be (slot) ── exchange the device's 16 bytes
//              (bytes, who and which change) ── confirm the mark that was there before ── done
//              (slot)
//
// A process that replaces another's mark first confirms it in that process's slot (`confirmed`). So
// a change has happened if and only if its mark is the device's last one or was confirmed. A
// process that finds an exited one becomes the owner of its slot, completes or undoes the change
// that was begun, and gives back the bytes held, by changes of the same kind; if it is killed, the
// next process continues. There are no locks.
//
// Used inside the target process: no allocation, no exceptions, no library calls.
#pragma once

#include "observe/wire/gpu_region.h"

namespace assay::wire {

// More than any machine has, and small enough that sums do not overflow.
inline constexpr std::uint64_t kGpuMostBytes = std::uint64_t{1} << 56U;

namespace ledger {

struct Balance {
  std::uint64_t used;
  std::uint64_t last;  // mark_of
};

constexpr unsigned kNumberBits = 48;
constexpr std::uint64_t mark_of(std::size_t slot, std::uint64_t number) {
  return (std::uint64_t{slot + 1} << kNumberBits) |
         (number & ((std::uint64_t{1} << kNumberBits) - 1));
}

// Exchanges both words at once; std::atomic of this size would call a library.
inline bool exchange(GpuDevice& device, Balance expected, Balance desired) {
  static_assert(offsetof(GpuDevice, used) % 16 == 0 &&
                offsetof(GpuDevice, last) == offsetof(GpuDevice, used) + 8);
  bool done = false;
  asm volatile("lock cmpxchg16b %1"
               : "=@ccz"(done), "+m"(device.used), "+m"(device.last), "+a"(expected.used),
                 "+d"(expected.last)
               : "b"(desired.used), "c"(desired.last)
               : "memory");
  return done;
}

// The change whose mark this is has happened, and its mark is about to be replaced.
inline void confirm(GpuRegion& region, std::uint64_t mark) {
  const std::uint64_t slot = mark >> kNumberBits;
  const std::uint64_t number = mark & ((std::uint64_t{1} << kNumberBits) - 1);
  if (slot == 0 || slot > kGpuSlots) return;
  std::atomic<std::uint64_t>& confirmed = region.slots[slot - 1].confirmed;
  std::uint64_t known = confirmed.load(std::memory_order_relaxed);
  while (known < number && !confirmed.compare_exchange_weak(known, number)) {
  }
}

}  // namespace ledger

// Only for the owner of the slot, one thread at a time: sets the bytes that it holds to `after`.
// False, with nothing changed, if that is an increase and the run would then hold more than
// `limit`.
inline bool hold(GpuRegion& region, std::size_t slot, std::size_t device_index, std::uint64_t after,
                 std::uint64_t limit) {
  GpuSlot& mine = region.slots[slot];
  GpuDevice& device = region.devices[device_index];
  const std::uint64_t before = mine.used[device_index].load(std::memory_order_relaxed);
  const std::uint64_t number = mine.sequence.load(std::memory_order_relaxed) + 1;
  const std::uint64_t most = limit < kGpuMostBytes ? limit : kGpuMostBytes;
  mine.sequence.store(number, std::memory_order_release);
  mine.entry_device.store(device_index, std::memory_order_release);
  mine.entry_after.store(after, std::memory_order_release);
  mine.entry.store(number, std::memory_order_release);
  for (;;) {
    const ledger::Balance seen{device.used.load(std::memory_order_acquire),
                               device.last.load(std::memory_order_acquire)};
    std::uint64_t next = 0;
    if (after <= before) {
      const std::uint64_t less = before - after;
      next = seen.used > less ? seen.used - less : 0;  // never below zero, whatever others wrote
    } else if (seen.used > most || after - before > most - seen.used) {
      mine.entry.store(0, std::memory_order_release);
      return false;
    } else {
      next = seen.used + (after - before);
    }
    if (seen.last >> ledger::kNumberBits != slot + 1) ledger::confirm(region, seen.last);
    if (ledger::exchange(device, seen, {next, ledger::mark_of(slot, number)})) break;
  }
  mine.used[device_index].store(after, std::memory_order_release);
  mine.entry.store(0, std::memory_order_release);
  return true;
}

// For the new owner of a slot: completes or undoes the change that its last owner had begun.
inline void settle(GpuRegion& region, std::size_t slot) {
  GpuSlot& mine = region.slots[slot];
  const std::uint64_t number = mine.entry.load(std::memory_order_acquire);
  const std::uint64_t device_index = mine.entry_device.load(std::memory_order_acquire);
  if (number == 0) return;
  if (device_index < kGpuDevices) {
    // In this order: a mark is confirmed before it is replaced.
    const bool stands = region.devices[device_index].last.load() == ledger::mark_of(slot, number);
    if (stands || mine.confirmed.load() >= number) {
      mine.used[device_index].store(mine.entry_after.load(), std::memory_order_release);
    }
  }
  mine.entry.store(0, std::memory_order_release);
}

// For the new owner of a slot: gives back everything that its last owner held.
inline void give_back_all(GpuRegion& region, std::size_t slot) {
  settle(region, slot);
  for (std::size_t device_index = 0; device_index < kGpuDevices; ++device_index) {
    region.slots[slot].overhead[device_index].store(0, std::memory_order_relaxed);
    if (region.slots[slot].used[device_index].load(std::memory_order_relaxed) != 0) {
      hold(region, slot, device_index, 0, kGpuUnlimited);
    }
  }
}

}  // namespace assay::wire
