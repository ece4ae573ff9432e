// Slots: claiming one, finding those whose owner has exited, and reclaiming what exited processes
// hold. A process is identified by its pid and start time.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "observe/shim/gpu/region/process.h"
#include "observe/shim/gpu/region/region.h"
#include "observe/wire/gpu_ledger.h"

namespace assay::gpu {
namespace {

using wire::GpuBlock;
using wire::GpuSlot;
using wire::kGpuBlocks;
using wire::kGpuSlots;

// Programs close descriptors that they do not know and may get the same number for another file,
// which must never be locked.
bool file_is_ours() {
  struct stat status {};
  const auto same_file = [&](int file) {
    return fstat(file, &status) == 0 && status.st_dev == process.device &&
           status.st_ino == process.inode;
  };
  if (same_file(process.file)) return true;
  const int opened = open(region_path, O_RDWR | O_CLOEXEC | O_NOCTTY);
  if (opened < 0) return false;
  const int file = move_up(opened);
  if (!same_file(file)) {
    close(file);
    return false;
  }
  process.file = file;
  return true;
}

bool lock_byte(std::size_t byte, short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(byte);
  lock.l_len = 1;
  return fcntl(process.file, F_SETLK, &lock) == 0;
}

bool is_alive(const GpuSlot& owner) {
  if (owner.namespace_id.load() != pid_namespace()) return false;  // its pid means nothing here
  const std::uint64_t ticks = start_ticks_of(owner.process.load());
  return ticks != 0 && ticks == owner.start_ticks.load();
}

// After exec a process has the same pid and start time.
bool was_this_process(const GpuSlot& owner) {
  return owner.process.load() == getpid() && owner.namespace_id.load() == pid_namespace() &&
         owner.start_ticks.load() == start_ticks_of(getpid());
}

// On success this process holds the slot's lock.
bool take_slot(std::size_t number) {
  GpuSlot& wanted = process.region->slots[number];
  if (!lock_byte(number, F_WRLCK)) return false;
  // The lock is free, but a running program may have closed the descriptor.
  if (wanted.process.load() != 0 && is_alive(wanted) && !was_this_process(wanted)) {
    lock_byte(number, F_UNLCK);
    return false;
  }
  wire::give_back_all(*process.region, number);  // before it gets its new owner
  wanted.process.store(getpid());
  wanted.start_ticks.store(start_ticks_of(getpid()));
  wanted.namespace_id.store(pid_namespace());
  // The last owner's counts stay in its blocks, which this process continues. (Bounded: other
  // processes can write this memory, too.)
  std::uint32_t at = wanted.blocks.load();
  for (std::size_t i = 0; i < kGpuBlocks && at != 0 && at <= kGpuBlocks; ++i) {
    GpuBlock& block = process.region->blocks[at - 1];
    block.next.store(process.idle);
    process.idle = at;
    at = block.sibling.load();
  }
  process.slot.store(static_cast<int>(number), std::memory_order_release);
  return true;
}

// The slot of this process from before exec, and what it held.
bool take_own_old_slot(std::uint32_t given) {
  const int me = getpid();
  for (std::uint32_t number = 0; number < given && number < kGpuSlots; ++number) {
    const GpuSlot& old = process.region->slots[number];
    if (old.process.load(std::memory_order_relaxed) != me) continue;
    if (was_this_process(old) && take_slot(number)) return true;
  }
  return false;
}

}  // namespace

std::uint32_t ticket(std::atomic<std::uint32_t>& next, std::uint32_t end) {
  if (next.load(std::memory_order_relaxed) >= end) return end;
  const std::uint32_t given = next.fetch_add(1, std::memory_order_relaxed);
  return given < end ? given : end;
}

int move_up(int file) {
  constexpr int kFrom = 200;
  const int moved = fcntl(file, F_DUPFD_CLOEXEC, kFrom);
  if (moved < 0) return file;
  close(file);
  return moved;
}

bool claim_slot() {
  if (!file_is_ours()) return false;
  const auto end = static_cast<std::uint32_t>(kGpuSlots);
  if (take_own_old_slot(process.region->header.next_slot.load())) return true;
  for (;;) {
    const std::uint32_t number = ticket(process.region->header.next_slot, end);
    if (number == end) break;
    if (take_slot(number)) return true;
  }
  // Start at different slots: many processes may be starting.
  const auto first =
      static_cast<std::uint32_t>(wire::gpu_mix(static_cast<std::uint64_t>(getpid())));
  for (std::uint32_t tried = 0; tried < end; ++tried) {
    if (take_slot((first + tried) % end)) return true;
  }
  return false;
}

void own(std::uint32_t number) {
  GpuBlock& block = process.region->blocks[number];
  GpuSlot& mine = process.region->slots[process.slot.load()];
  block.owner.store(static_cast<std::uint32_t>(process.slot.load()) + 1);
  block.sibling.store(mine.blocks.load());
  mine.blocks.store(number + 1);
}

// A process killed in here leaks blocks; their counts are still summed.
void adopt_blocks() {
  if (!file_is_ours()) return;
  const int mine = process.slot.load();
  for (std::size_t number = 0; number < kGpuSlots && process.idle == 0; ++number) {
    GpuSlot& other = process.region->slots[number];
    if (static_cast<int>(number) == mine || other.blocks.load() == 0 ||
        !lock_byte(number, F_WRLCK)) {
      continue;
    }
    if (!is_alive(other)) {
      std::uint32_t at = other.blocks.exchange(0);
      for (std::size_t i = 0; i < kGpuBlocks && at != 0 && at <= kGpuBlocks; ++i) {
        GpuBlock& block = process.region->blocks[at - 1];
        const std::uint32_t following = block.sibling.load();
        own(at - 1);
        block.next.store(process.idle);
        process.idle = at;
        at = following;
      }
    }
    lock_byte(number, F_UNLCK);
  }
}

// Bounded by the number of slots; checks only owners that hold memory of the device.
bool reclaim_exited(std::size_t device_index) {
  if (process.region == nullptr || !process.lock.try_lock_bounded()) return false;
  bool found = false;
  const int mine = process.slot.load();
  const std::uint32_t given = process.region->header.next_slot.load();
  if (file_is_ours()) {
    for (std::uint32_t number = 0; number < given && number < kGpuSlots; ++number) {
      GpuSlot& other = process.region->slots[number];
      if (static_cast<int>(number) == mine ||
          (other.used[device_index].load() == 0 && other.entry.load() == 0) ||
          !lock_byte(number, F_WRLCK)) {
        continue;
      }
      if (!is_alive(other)) {
        wire::give_back_all(*process.region, number);
        found = true;
      }
      lock_byte(number, F_UNLCK);
    }
  }
  process.lock.unlock();
  return found;
}

std::uint64_t start_ticks_of(int pid) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/stat", pid);
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  char text[1024];
  const ssize_t size = read(file, text, sizeof text - 1);
  close(file);
  if (size <= 0) return 0;
  text[size] = 0;
  const char* at = strrchr(text, ')');  // the name before it may contain anything
  if (at != nullptr && at[1] == ' ' && (at[2] == 'Z' || at[2] == 'X')) return 0;
  for (int field = 2; at != nullptr && field < 22; ++field) at = strchr(at + 1, ' ');
  return at == nullptr ? 0 : strtoull(at + 1, nullptr, 10);
}

std::uint64_t pid_namespace() {
  struct stat status {};
  return stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

}  // namespace assay::gpu
