// Each window belongs to one slot. Writers are counted; a slot without writers may be given to
// another window; a writer whose slot is taken maps the window temporarily for its one record.
#include "observe/shim/log_window.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include "observe/shim/shim.h"
#include "observe/shim/system_call.h"

namespace assay::shim {
namespace {

constexpr std::uint64_t kNone = ~std::uint64_t{0};
constexpr std::int32_t kTaken = -(1 << 30);  // added to a slot's users while it changes windows

struct Slot {
  std::atomic<std::uint64_t> begin{kNone};  // the window's offset in the log
  std::atomic<char*> base{nullptr};
};
constinit Slot slots[kSlots];

std::uint32_t slot_of(std::uint64_t begin) {
  return static_cast<std::uint32_t>(begin / wire::kWindowSize) % kSlots;
}

// Maps a window by duplicating the header's mapping (mremap), growing it up to the window, and
// unmapping what lies before. So neither a descriptor nor the log's path is needed: the program may
// close all descriptors or change its root or user, and the log may be removed.
char* map_window(std::uint64_t begin) {
  const long result =
      gate_call(SYS_mremap, shim.header, 0, begin + wire::kWindowSize, MREMAP_MAYMOVE);
  if (failed(result)) return nullptr;
  if (begin > 0) gate_call(SYS_munmap, result, begin);
  return reinterpret_cast<char*>(result) + begin;
}

void unmap_window(char* base) {
  gate_call(SYS_munmap, base, wire::kWindowSize);
}

// Gives the slot to the window if it has no writers. A fork may happen at any point: the child's
// slot is then empty or correct, and at worst a mapping is never used again.
bool give(std::uint32_t index, std::uint64_t begin) {
  std::atomic<std::int32_t>& users = shim.local->users[index];
  std::int32_t expected = 0;
  if (!users.compare_exchange_strong(expected, kTaken, std::memory_order_acquire)) return false;
  Slot& slot = slots[index];
  bool works = slot.begin.load(std::memory_order_relaxed) == begin;
  if (!works) {
    slot.begin.store(kNone);
    if (char* old = slot.base.exchange(nullptr); old != nullptr) unmap_window(old);
    char* base = map_window(begin);
    if (base != nullptr) {
      slot.base.store(base);
      slot.begin.store(begin);
      works = true;
    }
  }
  users.fetch_sub(kTaken, std::memory_order_release);
  return works;
}

}  // namespace

bool window_ready(std::uint64_t offset) {
  const std::uint64_t begin = wire::window_begin(offset);
  const std::uint32_t index = slot_of(begin);
  if (__builtin_expect(slots[index].begin.load(std::memory_order_relaxed) == begin, 1)) {
    const char* next = slots[index].base.load(std::memory_order_relaxed) + (offset - begin);
    __builtin_prefetch(next, 1);
    __builtin_prefetch(next + 64, 1);
    __builtin_prefetch(next + 128, 1);
    return true;
  }
  if (give(index, begin)) return true;
  char* base = map_window(begin);  // the slot is in use: at least tests whether mapping works
  if (base != nullptr) unmap_window(base);
  return base != nullptr;
}

Mapped::Mapped(std::uint64_t offset) {
  const std::uint64_t begin = wire::window_begin(offset);
  const std::uint32_t index = slot_of(begin);
  Slot& slot = slots[index];
  std::atomic<std::int32_t>& users = shim.local->users[index];
  char* base = nullptr;
  for (int attempt = 0; attempt < 2 && base == nullptr; ++attempt) {
    if (attempt > 0 && !give(index, begin)) break;
    if (users.fetch_add(1, std::memory_order_acquire) >= 0 &&
        slot.begin.load(std::memory_order_relaxed) == begin) {
      base = slot.base.load(std::memory_order_relaxed);
      slot_ = static_cast<std::int32_t>(index);
    } else {
      users.fetch_sub(1, std::memory_order_relaxed);
    }
  }
  if (base == nullptr) base = temporary_ = map_window(begin);
  if (base != nullptr) record_ = reinterpret_cast<wire::Record*>(base + (offset - begin));
}

Mapped::~Mapped() {
  if (slot_ >= 0) shim.local->users[slot_].fetch_sub(1, std::memory_order_release);
  if (temporary_ != nullptr) unmap_window(temporary_);
}

}  // namespace assay::shim
