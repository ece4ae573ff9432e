// Which system calls are of interest, by architecture: the numbers differ, the meaning does not.
// Behind path_call.h.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace assay::collect {

// What a call is, once its number is known. `…At` take a directory descriptor before each path.
enum class CallKind : std::uint8_t {
  kOpen,
  kOpenAt,
  kOpenAt2,
  kCreat,
  kMknod,  // makes a regular file if its mode says so
  kMknodAt,
  kTruncate,
  kUnlink,
  kUnlinkAt,
  kRename,
  kRenameAt,
  kRenameAt2,
  kLink,
  kLinkAt,
  kSymlink,
  kSymlinkAt,
  kSetTimes,
  kSetTimesAt,       // without a path: of the descriptor
  kSetTimesAtFlags,  // the same, with flags
  kExec,
  kExecAt,
  // Ways to reach files other than by opening a path. What they bring cannot be followed.
  kIoUring,
  kOpenByHandle,
  kPidfdGetfd,
  kFanotify,
  // They touch no file, but from then on a path may mean one file to the caller and another to us.
  kNewRoot,
  kMount,    // and what is mounted where may differ, or have changed under our hands
  kSetNs,    // the same, if its flags say so
  kUnshare,  // the same
  // Only a relative name means another file from then on. The shim counts its own; the gate is told
  // of those that go round it.
  kNewDirectory,
  // The process forbids itself calls from then on: the shim must make none that the program does
  // not make. (prctl only with PR_SET_SECCOMP.) Seccomp may also bring a listener of the program's
  // own, who is asked before a tracer is.
  kSandbox,
  kSeccomp,
};

// The numbers as the kernel's asm/unistd_64.h, unistd_x32.h and unistd_32.h have them by name; -1
// where there is no such call.
struct CallRow {
  std::string_view name;
  CallKind kind = CallKind::kOpen;
  int x86_64 = -1;
  int x32 = -1;  // without the bit
  int i386 = -1;
};

std::span<const CallRow> all_calls();

// Nothing for a call that is not in the table.
const CallRow* find_call(std::uint32_t arch, int number);

// Calls made through the x32 interface carry this in their number.
inline constexpr int kX32Bit = 0x4000'0000;

}  // namespace assay::collect
