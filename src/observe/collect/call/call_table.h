// The system calls of interest, with their numbers on each architecture. Used by stopped_call.cc.
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
  kMknod,  // creates a regular file if its mode says so
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
  // Ask about a file without opening it: access and readlink; stat.
  kQuery,
  kQueryAt,
  kStatus,
  kStatusAt,
  // Operations on files are queued in memory and submitted together.
  kIoUringSetup,
  kIoUringEnter,
  // Ways to reach files other than by opening a path; they cannot be followed.
  kOpenByHandle,
  kPidfdGetfd,
  kFanotify,
  // From then on a path may refer to different files for the caller and for the collector.
  kNewRoot,
  kMount,    // mounts differ, or change
  kSetNs,    // depending on flags
  kUnshare,  // depending on flags
  // Relative names refer to other files from then on. The shim counts its own calls; the gate stops
  // those that bypass the shim.
  kNewDirectory,
  // The process restricts its own system calls from then on: the shim must make only calls that the
  // program makes. (prctl only with PR_SET_SECCOMP.) Seccomp may also install a listener of the
  // program's own, which takes precedence over a tracer.
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

// Nothing for a call that is not in the table.
const CallRow* find_call(std::uint32_t arch, int number);

// Calls made through the x32 interface carry this in their number.
inline constexpr int kX32Bit = 0x4000'0000;

}  // namespace assay::collect
