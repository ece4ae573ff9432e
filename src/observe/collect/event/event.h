// Event: what a traced command did, as collectors tell it; Sink: who is told. One algebra for all
// collectors (see wire/record.h), so that the same command gives the same lineage under each.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string_view>

#include "observe/wire/record.h"

namespace assay::collect {

// Paths are absolute and as the kernel would find the file from the collector's root directory;
// they may contain symbolic links, "." and "..". The views live only during the call.
struct Event {
  wire::Op op = wire::Op::kNone;
  wire::Source source = wire::Source::kShim;
  std::uint16_t flags = 0;  // wire::flag
  pid_t thread = 0;
  pid_t process = 0;  // thread group
  pid_t parent = 0;   // 0: not known
  std::int32_t value = 0;
  std::int64_t time_ns = 0;  // CLOCK_MONOTONIC
  wire::Stamp stamp;
  std::string_view path;
  std::string_view other;
};

enum class Change {
  kCut,              // all bytes go at once
  kContent,          // some may be overwritten, cut or added to, by a call that cannot read them
  kContentReadable,  // the same by one that can: an open for reading and writing
  kName,   // the name goes away or comes to mean another file; the bytes stay while held open
  kTimes,  // the bytes stay, but the times that could tell so will not
};

class Sink {
 public:
  virtual ~Sink() = default;

  // In the order in which the log has them. Reads and creations are told after they happened,
  // everything else may be told just before; a call that then failed is told all the same only
  // where the collector cannot know (never by ptrace).
  virtual void happened(const Event& event) = 0;

  // The file at `path` (a regular file, `stamp` is its state now) is about to be changed by the
  // command, which is stopped until this returns. Called before the event itself. Whoever wants the
  // content as it is now takes it here. Everything that happened before has been told.
  virtual void about_to_change(std::string_view path, const wire::Stamp& stamp, Change change) = 0;

  // About every 100 ms or more often while the command runs, whether anything happened or not: for
  // work of its own that a sink has to look after. Not when recording has ended.
  virtual void meanwhile() {}
};

}  // namespace assay::collect
