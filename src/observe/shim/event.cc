#include "observe/shim/event.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "observe/shim/directory_name.h"
#include "observe/shim/log_window.h"
#include "observe/shim/system_call.h"

namespace assay::shim {
namespace {

struct ProcessIds {
  std::int32_t thread;
  std::int32_t process;
  std::int32_t parent;  // recorded once per thread
};

// The ids of this thread and process, cached. A fork invalidates the cache (local->process is 0
// again). The child of a vfork shares all memory with its parent, including thread-local memory, so
// only the kernel knows which of the two this is; asking for the thread id is enough, since it
// identifies the process too.
ProcessIds current_ids() {
  struct Known {
    std::int32_t thread;
    std::int32_t process;
    std::int32_t cached_for;
  };
  static thread_local constinit Known known{};
  std::int32_t first = shim.local->process.load(std::memory_order_relaxed);
  const bool same = known.cached_for == first && first != 0;
  if (same && !shim.vforks.load(std::memory_order_relaxed)) {
    return {known.thread, known.process, 0};
  }
  const auto thread = static_cast<std::int32_t>(gate_call(SYS_gettid));
  if (same && known.thread == thread) return {thread, known.process, 0};
  const auto process = static_cast<std::int32_t>(gate_call(SYS_getpid));
  if (first == 0) shim.local->process.store(first = process, std::memory_order_relaxed);
  known = {thread, process, first};
  return {thread, process, static_cast<std::int32_t>(gate_call(SYS_getppid))};
}

template <std::size_t kSize>
constexpr Text text_of(const char (&literal)[kSize]) {
  return {literal, kSize - 1};
}

bool starts_with(Text text, const char* with, std::size_t length) {
  return text.length >= length && memcmp(text.data, with, length) == 0;
}

// Names that refer to a different file in each process (/dev/stdin, /proc/self/…). /dev/shm is an
// ordinary folder.
bool is_process_specific(Text absolute) {
  return starts_with(absolute, "/proc/", 6) ||
         (starts_with(absolute, "/dev/", 5) && !starts_with(absolute, "/dev/shm/", 9));
}

std::int64_t nanoseconds(const struct timespec& time) {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

void commit(wire::Record& record, std::size_t size) {
  record.word.store(wire::record_word(wire::State::kCommitted, static_cast<std::uint32_t>(size)),
                    std::memory_order_release);
}

// Reserves `size` bytes. There was enough space before the call (log_ready()); if other writers
// have used it since, waits for the collector to allocate more.
std::uint64_t reserve_record(std::size_t size) {
  wire::Reservation place = wire::reserve(*shim.header, size);
  for (int waited_ms = 0; place.offset == 0 && waited_ms < 1000; ++waited_ms) {
    const struct timespec pause = {.tv_sec = 0, .tv_nsec = 1'000'000};
    gate_call(SYS_nanosleep, &pause, 0);
    place = wire::reserve(*shim.header, size);
  }
  if (place.pad != 0) {
    Mapped gap(place.pad);
    if (gap.record() != nullptr) commit(*gap.record(), place.pad_size);
  }
  return place.offset;
}

char* append(char* to, Text text) {
  if (text.length > 0) memcpy(to, text.data, text.length);  // an empty one may have no data
  return to + text.length;
}

// The content of a record except process and time. Without a status, it is not about a file.
struct RecordFields {
  wire::RecordOp op;
  const struct stat* status = nullptr;
  std::int32_t value = 0;
  std::int32_t child = 0;  // the process it is about, if not this one
  std::int64_t time_ns = 0;
  std::uint16_t flags = 0;
};

// Writes a record. The path is `before`, a slash, and `path`, or just `path` if `before` is empty;
// the second text is `other` followed directly by `other_rest`.
void write(const RecordFields& fields, Text before, Text path, Text other = {},
           Text other_rest = {}) {
  const std::int64_t now = fields.time_ns != 0 ? fields.time_ns : monotonic_ns();
  ProcessIds by = current_ids();
  if (fields.child != 0) by = {fields.child, fields.child, by.process};
  const bool slash = before.length > 0 && before.data[before.length - 1] != '/';
  const std::size_t path_length = before.length + (slash ? 1 : 0) + path.length;
  const std::size_t other_length = other.length + other_rest.length;
  const std::size_t size = wire::record_size(path_length + other_length);
  const std::uint64_t offset = reserve_record(size);
  if (offset == 0) {
    shim.header->dropped.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  Mapped mapped(offset);
  wire::Record* record = mapped.record();
  if (record == nullptr) {
    shim.header->dropped.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  record->word.store(wire::record_word(wire::State::kReserved, static_cast<std::uint32_t>(size)),
                     std::memory_order_relaxed);
  std::atomic_signal_fence(
      std::memory_order_release);  // the length first: the process may be killed
  record->op = fields.op;
  record->source = wire::Source::kShim;
  record->flags = static_cast<std::uint16_t>(fields.flags |
                                             (fields.status != nullptr ? 0 : wire::flag::kNoStamp));
  record->path_length = static_cast<std::uint16_t>(path_length);
  record->other_length = static_cast<std::uint16_t>(other_length);
  record->thread = by.thread;
  record->process = by.process;
  record->parent = by.parent;
  record->value = fields.value;
  record->time_ns = now;
  record->stamp = {};
  if (fields.status != nullptr) {
    record->stamp = {.device = fields.status->st_dev,
                     .inode = fields.status->st_ino,
                     .size = fields.status->st_size,
                     .mtime_ns = nanoseconds(fields.status->st_mtim),
                     .ctime_ns = nanoseconds(fields.status->st_ctim)};
  }
  char* text = append(record->text(), before);
  if (slash) *text++ = '/';
  append(append(append(text, path), other), other_rest);
  commit(*record, size);
}

}  // namespace

bool log_ready() {
  const wire::LogHeader& header = *shim.header;
  const std::uint64_t tail = header.tail.load(std::memory_order_relaxed);
  return tail + wire::kMaxRecordSize <= header.allocated_end.load(std::memory_order_acquire) &&
         window_ready(tail);
}

std::int64_t monotonic_ns() {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return nanoseconds(now);
}

void record_child(wire::RecordOp op, pid_t child, int status, std::int64_t time_ns) {
  write({.op = op, .value = status, .child = child, .time_ns = time_ns}, {}, {});
}

void record_text(wire::RecordOp op, const char* text, std::size_t length) {
  write({.op = op}, {}, {text, length});
}

void record_traffic(const char* text, std::size_t length, std::uint64_t connection,
                    std::uint64_t received, std::uint64_t sent) {
  constexpr std::uint64_t kNsPerSecond = 1'000'000'000;
  struct stat counted {};
  counted.st_ino = connection;
  counted.st_size = static_cast<off_t>(received);
  counted.st_mtim.tv_sec = static_cast<time_t>(sent / kNsPerSecond);
  counted.st_mtim.tv_nsec = static_cast<long>(sent % kNsPerSecond);
  write({.op = wire::RecordOp::kNetwork, .status = &counted}, {}, {text, length});
}

[[gnu::noinline]] void record_name(wire::RecordOp op, std::uint16_t flags, int directory,
                                   const char* path, std::size_t path_length) {
  char buffer[PATH_MAX];
  const Text given{path, path_length};
  const RecordFields fields{.op = op, .flags = flags};
  if (path_length > 0 && path[0] == '/') {
    if (!is_process_specific(given)) write(fields, {}, given);
    return;
  }
  const Text before = name_of_directory(directory, buffer, sizeof buffer);
  const bool fits = before.length + 1 + path_length < PATH_MAX;
  if (before.length > 0 && fits && !is_process_specific(before)) {
    write(fields, before, given);
  }
}

[[gnu::noinline]] void record_open(wire::RecordOp op, int file, const struct stat& status,
                                   int directory, const char* path, std::size_t path_length) {
  char buffer[PATH_MAX];
  const Text given{path, path_length};
  if (path_length > 0 && path[0] == '/') {
    if (!is_process_specific(given)) return write({op, &status}, {}, given);
  } else {
    const Text before = name_of_directory(directory, buffer, sizeof buffer);
    const bool fits = before.length + 1 + path_length < PATH_MAX;
    if (before.length > 0 && fits && !is_process_specific(before)) {
      return write({op, &status}, before, given);
    }
  }
  // Then the name that the file itself has, or had. Memory (memfd) has none.
  Text name = name_of_descriptor(file, buffer, sizeof buffer);
  if (status.st_nlink == 0 && ends_deleted(name)) {
    if (starts_with(name, "/memfd:", 7)) return;
    name.length -= kDeletedLength;
  }
  if (name.length > 0) return write({op, &status}, {}, name);
  if (name.too_long) {
    return write({wire::RecordOp::kMissed, &status}, {}, text_of(wire::kLongPath), given,
                 text_of(wire::kLongPathText));
  }
  shim.header->dropped.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace assay::shim
