// The shim's state in one process: whether it is active, the log's header, and memory of its own
// that a fork clears. Set when the shim starts (shim.cc); everything else only reads it.
//
// The shim runs inside arbitrary programs: in signal handlers, between fork and exec, in
// constructors before its own and destructors after. So: no locks, no allocation, only
// async-signal-safe library calls, and little stack.
#pragma once

#include <atomic>
#include <cstdint>

#include "observe/wire/gate.h"
#include "observe/wire/log_header.h"

// Visible to programs; everything else in the library is hidden.
#define ASSAY_EXPORTED __attribute__((visibility("default")))

namespace assay::shim {

inline constexpr std::uint32_t kSlots = 4;                             // see log_window.h
inline constexpr std::uint32_t kRecorded = std::uint32_t{1} << 14U;    // see recorded_opens.h
inline constexpr std::uint32_t kRecordedAtFirst = std::uint32_t{512};  // one page of it

// Anonymous memory that the kernel clears in the child of a fork (MADV_WIPEONFORK), however the
// child was created: it is valid for this process only.
struct Local {
  std::atomic<std::int32_t> process;        // the process that recorded first; 0: none yet
  std::atomic<std::uint32_t> inserted;      // into `recorded`
  std::atomic<std::int32_t> users[kSlots];  // writers in a window
  alignas(4096) std::atomic<std::uint64_t> recorded[kRecorded];
};

enum class State : std::uint32_t { kUnknown, kStarting, kOn, kOff };
static_assert(static_cast<std::uint32_t>(State::kOff) == wire::kShimDisabled);

struct Shim {
  std::atomic<State> state{State::kUnknown};
  wire::LogHeader* header = nullptr;
  Local* local = nullptr;
  // Changes of directory, after which relative names refer to other files: the upper half counts
  // completed ones, the lower half those under way.
  std::atomic<std::uint64_t> moves{0};
  std::atomic<bool> vforks{false};  // whether vfork was ever called
  // The root directory when the shim started. With another root, paths mean nothing to the
  // collector.
  std::uint64_t root_mount = 0;
  std::uint64_t root_inode = 0;
};

inline constexpr std::uint64_t kMoved = std::uint64_t{1} << 32U;
inline constexpr std::uint64_t kMoving = kMoved - 1;

extern constinit Shim shim;

// Decides once whether this process is recorded; it may be switched off later.
bool start();

// Whether calls may be made from the gate's instruction.
inline bool on() {
  const State state = shim.state.load(std::memory_order_acquire);
  if (__builtin_expect(state == State::kOn, 1)) return true;
  return state == State::kUnknown && start();
}

// Called when "/" may have become another directory (chroot, namespaces): switches off if it did.
void check_root();

}  // namespace assay::shim
