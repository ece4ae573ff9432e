// What the shim knows in one process: whether it is at work, the log's header, and memory of its
// own that a fork empties. start.cc fills it; everything else only reads it.
//
// The shim runs inside programs it knows nothing about: in signal handlers, between fork and exec,
// in constructors that run before its own and destructors after. So: no locks, no allocation, no
// library calls but those that are safe in signal handlers, and little stack.
#pragma once

#include <atomic>
#include <cstdint>

#include "observe/wire/gate.h"
#include "observe/wire/log_header.h"

namespace assay::shim {

inline constexpr std::uint32_t kSlots = 4;                         // see window.h
inline constexpr std::uint32_t kSeen = std::uint32_t{1} << 14U;    // see seen.h
inline constexpr std::uint32_t kSeenAtFirst = std::uint32_t{512};  // one page of it

// Anonymous memory that the kernel hands to the child of a fork as zeroes (MADV_WIPEONFORK),
// however the child was made. What is remembered here is true of this process only.
struct Local {
  std::atomic<std::int32_t> process;        // whoever recorded first; 0: nobody yet
  std::atomic<std::uint32_t> inserted;      // into `seen`
  std::atomic<std::int32_t> users[kSlots];  // who is writing in a window
  alignas(4096) std::atomic<std::uint64_t> seen[kSeen];
};

enum class State : std::uint32_t { kUnknown, kStarting, kOn, kOff };
static_assert(static_cast<std::uint32_t>(State::kOff) == wire::kStepAside);

struct Shim {
  std::atomic<State> state{State::kUnknown};
  wire::LogHeader* header = nullptr;
  Local* local = nullptr;
  // Changes of directory, after which relative names mean something else: above how many there
  // were, below how many are under way.
  std::atomic<std::uint64_t> moves{0};
  std::atomic<bool> vforks{false};  // whether there ever was one
  // What "/" was when the shim started. Where it is something else, our paths mean nothing outside.
  std::uint64_t root_mount = 0;
  std::uint64_t root_inode = 0;
};

inline constexpr std::uint64_t kMoved = std::uint64_t{1} << 32U;
inline constexpr std::uint64_t kMoving = kMoved - 1;

extern constinit Shim shim;

// Decides whether this process is recorded. For good, except that it may be switched off.
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
