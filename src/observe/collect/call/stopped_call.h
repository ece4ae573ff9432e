// effect_of(): what a path-class system call that a process is about to make will do to files. Its
// arguments are read from the stopped process and its paths made absolute. Used by the gate and by
// ptrace, so that they cannot disagree.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "observe/collect/event/event.h"

namespace assay::collect {

// As seccomp_data has them. `arch` is AUDIT_ARCH_X86_64 or AUDIT_ARCH_I386; x32 calls carry their
// bit in `number`.
struct SystemCall {
  std::uint32_t arch = 0;
  int number = 0;
  std::array<std::uint64_t, 6> arguments{};
};

// The numbers that must be stopped on one architecture, and for those that open by flags, which
// argument holds the flags (an open with O_PATH touches no content and passes).
struct CallToStop {
  int number = 0;
  int flags_argument = -1;       // -1: always stopped
  int empty_path_argument = -1;  // the argument whose flags may include AT_EMPTY_PATH
};
std::span<const CallToStop> calls_to_stop(std::uint32_t arch);

// What the call will do if it succeeds, from the state of the file system before the call.
struct CallEffect {
  // For EventSink::before_change(), in order. Existing regular files only.
  struct PendingChange {
    std::string path;
    wire::Stamp stamp;
    Change change = Change::kContent;
  };
  std::vector<PendingChange> changes;
  // The events, in order; for most calls one. `path` and `other` are owned.
  struct ExpectedEvent {
    wire::RecordOp op = wire::RecordOp::kNone;
    std::uint16_t flags = 0;
    wire::Stamp stamp;  // of the file before the call; zero with flag::kNoStamp for one to be made
    std::string path;
    std::string other;  // for an opened file: the path as given, if it goes through links
  };
  std::vector<ExpectedEvent> events;
  // Whether the call is expected to succeed. The gate, which never sees results, reports events
  // only then; ptrace waits for the result instead.
  bool will_succeed = false;
  // The call will fail because the file does not exist, and the event says just that: it is
  // reported without waiting for a result.
  bool reports_failure = false;
  bool opens_result = true;  // if a file is made, the call's result is its descriptor
};

// `thread` must be stopped in the call. Nothing when the call is of no interest (a directory, a
// device, a path that cannot be read).
std::optional<CallEffect> effect_of(pid_t thread, const SystemCall& call);

}  // namespace assay::collect
