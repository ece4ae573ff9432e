// The event log: a file with one header page and then windows of records, mapped by every process
// of the command and by the collector. Writers reserve space with one compare-and-swap and commit
// with a store; no process waits for another, and committed records survive the death of a writer
// or of the collector.
//
// The collector allocates space before it is used (allocated_end): the pages exist on disk, so that
// a full disk never raises SIGBUS in the command. A writer that finds no space does not record; its
// call goes through the gate (gate.h).
//
// Used inside the target process: no allocation, no exceptions, no library calls.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "observe/wire/gate.h"
#include "observe/wire/record.h"

namespace assay::wire {

inline constexpr std::uint64_t kLogMagic = 0x31474F4C59415341;  // "ASAYLOG1"
inline constexpr std::size_t kHeaderSize = 4096;
// A record never crosses from one window into the next: a process maps one window at a time.
inline constexpr std::size_t kWindowSize = std::size_t{4} << 20U;
inline constexpr std::size_t kMaxRecordSize = std::size_t{256} << 10U;

// The environment variable with the log's path, for the shim.
inline constexpr const char* kLogVariable = "ASSAY_EVENT_LOG";

struct LogHeader {
  std::uint64_t magic = kLogMagic;
  std::uint64_t version = 1;
  // The collector's "/" (statx: stx_mnt_id, stx_ino); 0: unknown. In a process with another root or
  // mount namespace paths refer to other files, and the shim leaves it to the gate.
  std::uint64_t root_mount = 0;
  std::uint64_t root_inode = 0;
  // The project's folder, without a slash at its end; empty: none, or its path is too long.
  std::uint64_t project_length = 0;
  char project[1024] = {};
  // Written by the collector, read by the shim:
  alignas(64) std::atomic<std::uint64_t> allocated_end{kHeaderSize};
  // Increased whenever a name may refer to another file (rename, delete, link, symbolic link, a
  // write to an existing file): what a process remembers of earlier opens is invalid then.
  std::atomic<std::uint64_t> epoch{0};
  // How often a process of the command has restricted its own system calls. If not 0, the shim in a
  // new program asks the collector whether it is in such a sandbox, by opening the log with an
  // ordinary call.
  std::atomic<std::uint64_t> sandboxes{0};
  // Changed by every writer:
  alignas(64) std::atomic<std::uint64_t> tail{kHeaderSize};
  // Events that could not be recorded.
  alignas(64) std::atomic<std::uint64_t> dropped{0};
  std::atomic<std::uint64_t> shims{0};  // processes in which the shim is active
  // Set when a process has found that nobody answers at the gate any more.
  std::atomic<std::uint64_t> deserted{0};
  // Of the gate that stands around the command; written before it starts.
  StoppedNumbers stopped;
};
static_assert(sizeof(LogHeader) <= kHeaderSize);

// Where the window that holds `offset` begins. The first window is shorter by the header.
constexpr std::uint64_t window_begin(std::uint64_t offset) {
  return offset & ~std::uint64_t{kWindowSize - 1};
}

// A place for a record of `size` bytes (record_size), or 0 when there is none. `pad` is the offset
// of a gap of `pad_size` bytes that the caller must first commit as padding (RecordOp::kNone, only
// the word is written), or 0.
struct Reservation {
  std::uint64_t offset = 0;
  std::uint64_t pad = 0;
  std::uint32_t pad_size = 0;
};

inline Reservation reserve(LogHeader& header, std::size_t size) {
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
