// Event: one thing that a traced command did. EventSink: receives events. All collectors use the
// same operations (wire/record.h), so that a command has the same lineage under each of them.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>

#include <cstdint>
#include <string_view>

#include "base/clock.h"
#include "observe/wire/record.h"

namespace assay::collect {

// Paths are absolute, as seen from the collector's root directory; they may contain symbolic links,
// "." and "..". The string_views are valid only during the call.
struct Event {
  wire::RecordOp op = wire::RecordOp::kNone;
  wire::Source source = wire::Source::kShim;
  std::uint16_t flags = 0;  // wire::flag
  pid_t thread = 0;
  pid_t process = 0;  // thread group
  pid_t parent = 0;   // 0: unknown
  std::int32_t value = 0;
  std::int64_t time_ns = 0;  // CLOCK_MONOTONIC
  wire::Stamp stamp;
  std::string_view path;
  std::string_view other;
};

enum class Change {
  kTruncate,         // truncated to zero bytes
  kContent,          // may be overwritten, cut or appended to, through a write-only descriptor
  kContentReadable,  // the same through a descriptor open for reading and writing
  kName,   // the name is removed or will refer to another file; open descriptors keep the content
  kTimes,  // the content stays, but its timestamps will no longer show that
};

class EventSink {
 public:
  virtual ~EventSink() = default;

  // In log order. Reads and creations arrive after they happened, everything else possibly just
  // before. A call that then fails is reported only where the collector cannot see results (ptrace
  // always can).
  virtual void on_event(const Event& event) = 0;

  // The command is about to change the regular file at `path`, whose state is `stamp`, and is
  // stopped until this returns: the last chance to read the old content. Called before the event
  // itself and after all earlier events.
  virtual void before_change(std::string_view path, const wire::Stamp& stamp, Change change) = 0;

  // Called at least about every 100 ms while the command runs and is recorded, for background work
  // of the sink.
  virtual void on_tick() {}
};

// The clock of events.
inline std::int64_t monotonic_ns() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return base::nanoseconds(time);
}

inline wire::Stamp stamp_of(const struct stat& status) {
  return {.device = status.st_dev,
          .inode = status.st_ino,
          .size = status.st_size,
          .mtime_ns = base::nanoseconds(status.st_mtim),
          .ctime_ns = base::nanoseconds(status.st_ctim)};
}

}  // namespace assay::collect
