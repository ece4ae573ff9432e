// PathCall: a path-class system call that a process is about to make, read out of its registers and
// memory, with its paths made absolute. The seccomp gate and ptrace both stop processes at these
// calls and both understand them here, so they cannot disagree.
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
// argument holds the flags (an open with O_PATH, or of a directory, touches no content and passes).
struct Stopped {
  int number = 0;
  int flags_argument = -1;  // -1: always stopped
};
std::span<const Stopped> stopped_calls(std::uint32_t arch);

// What the call will do if it succeeds, judged from the file system as it is before the call.
struct Effect {
  // What to tell Sink::about_to_change first, in order. Only regular files that exist.
  struct Ahead {
    std::string path;
    wire::Stamp stamp;
    Change change = Change::kContent;
  };
  std::vector<Ahead> ahead;
  // The events, in order; for most calls one. `path` and `other` are owned.
  struct Told {
    wire::Op op = wire::Op::kNone;
    std::uint16_t flags = 0;
    wire::Stamp stamp;  // of the file before the call; zero with flag::kNoStamp for one to be made
    std::string path;
    std::string other;
  };
  std::vector<Told> told;
  // Whether the call can be expected to succeed. The gate, which never sees results, tells events
  // only then; ptrace waits for the result instead.
  bool will_succeed = false;
};

// `thread` must be stopped in the call. Nothing when the call is of no interest (a directory, a
// device, a path that cannot be read).
std::optional<Effect> effect_of(pid_t thread, const SystemCall& call);

}  // namespace assay::collect
