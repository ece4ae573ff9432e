// The event log: a file of one header page and then windows of records, mapped by every process of
// the command and by the collector. Writers reserve space with one compare-and-swap and commit by a
// store; nobody waits for anybody, and whatever was committed survives the death of either side.
//
// Space is promised by the collector before it is used (allocated_end): the pages exist on disk, so
// that a full disk can never raise SIGBUS in the command. A writer that finds no space does not
// record; it takes the slow path through the collector (see gate.h).
//
// Used inside the target process: no allocation, no exceptions, no library calls.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "observe/wire/record.h"

namespace assay::wire {

inline constexpr std::uint64_t kLogMagic = 0x31474F4C59415341;  // "ASAYLOG1"
inline constexpr std::size_t kHeaderSize = 4096;
// A record never crosses from one window into the next: a process maps one window at a time.
inline constexpr std::size_t kWindowSize = std::size_t{4} << 20U;
inline constexpr std::size_t kMaxRecordSize = std::size_t{256} << 10U;

// The environment variable that tells the shim where the log is.
inline constexpr const char* kLogVariable = "ASSAY_EVENT_LOG";

struct LogHeader {
  std::uint64_t magic = kLogMagic;
  std::uint64_t version = 1;
  // The collector's "/" as statx tells it (stx_mnt_id, stx_ino); 0: not told. In a process that has
  // another root or mount namespace paths mean other files, and the shim leaves it to the gate.
  std::uint64_t root_mount = 0;
  std::uint64_t root_inode = 0;
  // What the collector reads and writes and the shim only reads:
  alignas(64) std::atomic<std::uint64_t> allocated_end{kHeaderSize};
  // Grows whenever a name may have come to mean another file (rename, delete, link, symbolic link,
  // a write to an existing file): what a process remembers of earlier opens is worth nothing then.
  std::atomic<std::uint64_t> epoch{0};
  // How often a process of the command has forbidden itself system calls. If ever, a program that
  // is started asks the collector whether it is in such a sandbox, by opening the log as anyone
  // would.
  std::atomic<std::uint64_t> sandboxes{0};
  // What every writer changes:
  alignas(64) std::atomic<std::uint64_t> tail{kHeaderSize};
  // Events that happened and could not be recorded anywhere.
  alignas(64) std::atomic<std::uint64_t> dropped{0};
  std::atomic<std::uint64_t> shims{0};  // processes in which the shim is at work
};
static_assert(sizeof(LogHeader) <= kHeaderSize);

// Where the window that holds `offset` begins. The first window is shorter by the header.
constexpr std::uint64_t window_begin(std::uint64_t offset) {
  return offset & ~std::uint64_t{kWindowSize - 1};
}

// A place for a record of `size` bytes (record_size), or 0 when there is none. `pad` is the offset
// of a gap of `pad_size` bytes that the caller must first commit as padding (Op::kNone, only the
// word is written), or 0.
struct Place {
  std::uint64_t offset = 0;
  std::uint64_t pad = 0;
  std::uint32_t pad_size = 0;
};

inline Place reserve(LogHeader& header, std::size_t size) {
  std::uint64_t tail = header.tail.load(std::memory_order_relaxed);
  for (;;) {
    std::uint64_t at = tail;
    const std::uint64_t window_end = window_begin(tail) + kWindowSize;
    if (tail + size > window_end) at = window_end;
    if (at + size > header.allocated_end.load(std::memory_order_acquire)) return {};
    if (header.tail.compare_exchange_weak(tail, at + size, std::memory_order_relaxed)) {
      return {at, at == tail ? 0 : tail, static_cast<std::uint32_t>(at - tail)};
    }
  }
}

}  // namespace assay::wire
