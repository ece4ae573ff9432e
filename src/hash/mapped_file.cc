#include "hash/mapped_file.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <utility>

namespace assay::hash {
namespace {

// The handler may interrupt any thread anywhere: it reads lock-free atomics and makes system calls.
static_assert(std::atomic<std::uintptr_t>::is_always_lock_free);

struct Slot {
  std::atomic<bool> taken = false;
  std::atomic<std::uintptr_t> begin = 0;  // 0: no mapping
  std::atomic<std::uintptr_t> end = 0;
  std::atomic<bool> damaged = false;
};

constinit std::array<Slot, 64> slots;
constinit std::size_t page_bytes = 4096;
struct sigaction previous;

// Maps zeros from the page of `address` to the end of the mapping. Makes the system call directly,
// because sanitizers' mmap() wrappers are not async-signal-safe.
bool cover(Slot& slot, std::uintptr_t address) {
  const std::uintptr_t begin = slot.begin.load();
  const std::uintptr_t end = slot.end.load();
  // Another thread may be reusing this slot; `end` changes only while `begin` is 0.
  if (slot.begin.load() != begin) return false;
  if (begin == 0 || address < begin || address >= end) return false;
  const std::uintptr_t page = address & ~(page_bytes - 1);
  const long mapped = ::syscall(SYS_mmap, page, end - page, PROT_READ,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  if (mapped != static_cast<long>(page)) return false;
  slot.damaged.store(true);
  return true;
}

void pass_on(int signal, siginfo_t* info, void* context) {
  if ((previous.sa_flags & SA_SIGINFO) != 0) {
    previous.sa_sigaction(signal, info, context);
  } else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
    previous.sa_handler(signal);
  } else {
    // After return a fault recurs and gets the default action; a signal that was sent does not
    // recur.
    ::sigaction(SIGBUS, &previous, nullptr);
    if (info->si_code <= 0) ::raise(signal);
  }
}

void on_sigbus(int signal, siginfo_t* info, void* context) {
  const int saved_errno = errno;
  bool covered = false;
  if (info->si_code > 0) {
    const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
    for (Slot& slot : slots) covered = covered || cover(slot, address);
  }
  errno = saved_errno;
  if (!covered) pass_on(signal, info, context);
}

bool handler_is_action() {
  static const bool installed = [] {
    page_bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    struct sigaction action {};
    action.sa_sigaction = on_sigbus;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    // Read before the handler is installed, which may be called at once.
    if (::sigaction(SIGBUS, nullptr, &previous) != 0) return false;
    return ::sigaction(SIGBUS, &action, nullptr) == 0;
  }();
  struct sigaction now {};
  return installed && ::sigaction(SIGBUS, nullptr, &now) == 0 && (now.sa_flags & SA_SIGINFO) != 0 &&
         now.sa_sigaction == on_sigbus;
}

std::optional<std::size_t> take_slot() {
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (!slots[i].taken.exchange(true)) return i;
  }
  return std::nullopt;
}

constexpr std::size_t kNoSlot = slots.size();

}  // namespace

std::optional<MappedFile> MappedFile::map(int fd, std::size_t size) {
  if (size == 0 || !handler_is_action()) return std::nullopt;
  const auto index = take_slot();
  if (!index) return std::nullopt;
  Slot& slot = slots[*index];
  void* at = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) {
    slot.taken = false;
    return std::nullopt;
  }
  const auto begin = reinterpret_cast<std::uintptr_t>(at);
  slot.damaged = false;
  slot.end = begin + size;
  slot.begin = begin;
  return MappedFile({static_cast<const std::byte*>(at), size}, *index);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : bytes_(other.bytes_), slot_(std::exchange(other.slot_, kNoSlot)) {}

MappedFile::~MappedFile() {
  if (slot_ == kNoSlot) return;
  slots[slot_].begin = 0;
  ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  slots[slot_].taken = false;
}

bool MappedFile::damaged() const {
  return slots[slot_].damaged;
}

SigbusUnblocked::SigbusUnblocked() {
  sigset_t sigbus;
  sigemptyset(&sigbus);
  sigaddset(&sigbus, SIGBUS);
  ::pthread_sigmask(SIG_UNBLOCK, &sigbus, &before_);
}

SigbusUnblocked::~SigbusUnblocked() {
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace assay::hash
