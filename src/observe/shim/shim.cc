// Starting the shim: the gate's page, the log's header, memory of its own. Runs as a constructor,
// or earlier if another library's constructor opens a file first. Failures are silent: the program
// then runs without the shim, and the gate sees all its calls.
#include "observe/shim/shim.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/stat.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "observe/shim/next_definition.h"
#include "observe/shim/system_call.h"

namespace assay::shim {

constinit Shim shim;

namespace {

constexpr long kPageSize = 4096;

void* map(std::uintptr_t at, long size, int protection, int flags, int file) {
  const long result = ordinary_call(SYS_mmap, at, size, protection, flags, file, 0);
  return failed(result) ? nullptr : reinterpret_cast<void*>(result);
}

void unmap(void* memory, long size) {
  ordinary_call(SYS_munmap, memory, size);
}

// Written first and then made executable: never both at once.
bool map_gate() {
  void* page = map(wire::kGatePage, kPageSize, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1);
  if (page == nullptr) return false;
  if (reinterpret_cast<std::uintptr_t>(page) == wire::kGatePage) {
    __builtin_memcpy(page, wire::kGateCode, sizeof wire::kGateCode);
    *reinterpret_cast<void**>(wire::kGateStateAddress) = &shim.state;
    if (ordinary_call(SYS_mprotect, page, kPageSize, PROT_READ | PROT_EXEC) == 0) return true;
  }
  unmap(page, kPageSize);  // not at the wanted address (a kernel before 4.17), or not executable
  return false;
}

// From the gate, so that the call is not stopped. The descriptor is closed when this returns. Until
// it is known that the process is not in a sandbox, only calls are made that the dynamic loader
// makes too.
wire::LogHeader* map_header(const char* path) {
  const long file = gate_call(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC | O_NOCTTY, 0);
  if (failed(file)) return nullptr;
  char first[wire::kHeaderSize];
  wire::LogHeader* header = nullptr;
  if (gate_call(SYS_read, file, first, sizeof first) == static_cast<long>(sizeof first)) {
    header = static_cast<wire::LogHeader*>(
        map(0, wire::kHeaderSize, PROT_READ | PROT_WRITE, MAP_SHARED, static_cast<int>(file)));
  }
  gate_call(SYS_close, file);
  if (header != nullptr && (header->magic != wire::kLogMagic || header->version != 1)) {
    unmap(header, wire::kHeaderSize);
    header = nullptr;
  }
  return header;
}

Local* map_local() {
  void* memory = map(0, sizeof(Local), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
  if (memory == nullptr) return nullptr;
  if (gate_call(SYS_madvise, memory, sizeof(Local), MADV_WIPEONFORK) == 0) {
    return static_cast<Local*>(memory);
  }
  unmap(memory, sizeof(Local));
  return nullptr;
}

// A mount's id is unique in the system, so this distinguishes mount namespaces as well.
bool read_root(std::uint64_t& mount, std::uint64_t& inode) {
  struct statx status;
  if (gate_call(SYS_statx, AT_FDCWD, "/", AT_NO_AUTOMOUNT, STATX_INO | STATX_MNT_ID,
                word(&status)) != 0) {
    return false;
  }
  mount = (status.stx_mask & STATX_MNT_ID) != 0 ? status.stx_mnt_id : 0;
  inode = status.stx_ino;
  return true;
}

// The collector sees this open and, if the process is in a sandbox, switches the shim off before
// the call continues.
bool in_sandbox(const wire::LogHeader& header, const char* path) {
  if (header.sandboxes.load(std::memory_order_acquire) == 0) return false;
  const long file = ordinary_call(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NOCTTY, 0);
  if (!failed(file)) ordinary_call(SYS_close, file);
  return shim.state.load(std::memory_order_acquire) == State::kOff;
}

bool set_up() {
  const char* path = getenv(wire::kLogVariable);
  if (path == nullptr || path[0] != '/' || !map_gate()) return false;
  wire::LogHeader* header = map_header(path);
  if (header != nullptr && !in_sandbox(*header, path) &&
      read_root(shim.root_mount, shim.root_inode) &&
      (header->root_inode == 0 ||
       (header->root_mount == shim.root_mount && header->root_inode == shim.root_inode))) {
    shim.local = map_local();
    if (shim.local != nullptr) {
      shim.header = header;
      header->shims.fetch_add(1, std::memory_order_relaxed);
      return true;
    }
  }
  if (header != nullptr) unmap(header, wire::kHeaderSize);
  unmap(reinterpret_cast<void*>(wire::kGatePage), kPageSize);
  return false;
}

[[gnu::constructor]] void at_load() {
  on();
}

}  // namespace

bool start() {
  // The C library itself has not been started (preinit functions): it is too early to decide.
  if (environ == nullptr) return false;
  State expected = State::kUnknown;
  // Another thread is starting it, or this one is, interrupted by a signal: the gate sees this
  // call.
  if (!shim.state.compare_exchange_strong(expected, State::kStarting)) {
    return expected == State::kOn;
  }
  find_others();
  next_once<DIR*(int)>(Function::kFdopendir);  // not first in the child of a fork
  const bool works = set_up();
  State starting = State::kStarting;  // unless the collector has switched it off
  shim.state.compare_exchange_strong(starting, works ? State::kOn : State::kOff);
  return works;
}

void check_root() {
  std::uint64_t mount = 0;
  std::uint64_t inode = 0;
  if (on() && !(read_root(mount, inode) && mount == shim.root_mount && inode == shim.root_inode)) {
    shim.state.store(State::kOff, std::memory_order_release);
  }
}

}  // namespace assay::shim
