#include "observe/collect/call/call_table.h"

#include <linux/audit.h>

#include <array>
#include <cstddef>

#include "observe/collect/call/stopped_call.h"

namespace assay::collect {
namespace {

using enum CallKind;

constexpr std::array kCalls = std::to_array<CallRow>({
    {"open", kOpen, 2, 2, 5},
    {"openat", kOpenAt, 257, 257, 295},
    {"openat2", kOpenAt2, 437, 437, 437},
    {"creat", kCreat, 85, 85, 8},
    {"mknod", kMknod, 133, 133, 14},
    {"mknodat", kMknodAt, 259, 259, 297},
    {"truncate", kTruncate, 76, 76, 92},
    {"truncate64", kTruncate, -1, -1, 193},
    {"unlink", kUnlink, 87, 87, 10},
    {"unlinkat", kUnlinkAt, 263, 263, 301},
    {"rename", kRename, 82, 82, 38},
    {"renameat", kRenameAt, 264, 264, 302},
    {"renameat2", kRenameAt2, 316, 316, 353},
    {"link", kLink, 86, 86, 9},
    {"linkat", kLinkAt, 265, 265, 303},
    {"symlink", kSymlink, 88, 88, 83},
    {"symlinkat", kSymlinkAt, 266, 266, 304},
    {"utime", kSetTimes, 132, 132, 30},
    {"utimes", kSetTimes, 235, 235, 271},
    {"futimesat", kSetTimesAt, 261, 261, 299},
    {"utimensat", kSetTimesAtFlags, 280, 280, 320},
    {"utimensat_time64", kSetTimesAtFlags, -1, -1, 412},
    {"execve", kExec, 59, 520, 11},
    {"execveat", kExecAt, 322, 545, 358},
    {"stat", kStatus, 4, 4, 106},
    {"lstat", kStatus, 6, 6, 107},
    {"stat64", kStatus, -1, -1, 195},
    {"lstat64", kStatus, -1, -1, 196},
    {"newfstatat", kStatusAt, 262, 262, -1},
    {"fstatat64", kStatusAt, -1, -1, 300},
    {"statx", kStatusAt, 332, 332, 383},
    {"access", kQuery, 21, 21, 33},
    {"faccessat", kQueryAt, 269, 269, 307},
    {"faccessat2", kQueryAt, 439, 439, 439},
    {"readlink", kQuery, 89, 89, 85},
    {"readlinkat", kQueryAt, 267, 267, 305},
    {"io_uring_setup", kIoUringSetup, 425, 425, 425},
    {"io_uring_enter", kIoUringEnter, 426, 426, 426},
    {"open_by_handle_at", kOpenByHandle, 304, 304, 342},
    {"pidfd_getfd", kPidfdGetfd, 438, 438, 438},
    {"fanotify_init", kFanotify, 300, 300, 338},
    {"chroot", kNewRoot, 161, 161, 61},
    {"pivot_root", kMount, 155, 155, 217},
    {"mount", kMount, 165, 165, 21},
    {"umount2", kMount, 166, 166, 52},
    {"move_mount", kMount, 429, 429, 429},
    {"open_tree", kMount, 428, 428, 428},
    {"open_tree_attr", kMount, 467, 467, 467},
    {"fsmount", kMount, 432, 432, 432},
    {"setns", kSetNs, 308, 308, 346},
    {"unshare", kUnshare, 272, 272, 310},
    {"seccomp", kSeccomp, 317, 317, 354},
    {"chdir", kNewDirectory, 80, 80, 12},
    {"fchdir", kNewDirectory, 81, 81, 133},
    {"prctl", kSandbox, 157, 157, 172},
});

constexpr int flags_argument(CallKind kind) {
  if (kind == kOpen) return 1;
  if (kind == kOpenAt) return 2;
  return -1;
}

// For calls that may name an open file by an empty path: the argument with the flags that say so.
constexpr int empty_path_argument(std::string_view name) {
  if (name == "newfstatat" || name == "fstatat64") return 3;
  if (name == "statx") return 2;
  return -1;
}

constexpr CallToStop to_stop(const CallRow& row, int number) {
  return {number, flags_argument(row.kind), empty_path_argument(row.name)};
}

constexpr std::size_t count(int CallRow::*column) {
  std::size_t rows = 0;
  for (const CallRow& row : kCalls) rows += row.*column >= 0 ? 1 : 0;
  return rows;
}

// One list for the architecture: the kernel reports x32 calls as x86-64's.
constexpr auto kStopped64 = [] {
  std::array<CallToStop, count(&CallRow::x86_64) + count(&CallRow::x32)> list{};
  std::size_t used = 0;
  for (const CallRow& row : kCalls) {
    if (row.x86_64 >= 0) list[used++] = to_stop(row, row.x86_64);
  }
  for (const CallRow& row : kCalls) {
    if (row.x32 >= 0) list[used++] = to_stop(row, row.x32 | kX32Bit);
  }
  return list;
}();

constexpr auto kStopped32 = [] {
  std::array<CallToStop, count(&CallRow::i386)> list{};
  std::size_t used = 0;
  for (const CallRow& row : kCalls) {
    if (row.i386 >= 0) list[used++] = to_stop(row, row.i386);
  }
  return list;
}();

}  // namespace

const CallRow* find_call(std::uint32_t arch, int number) {
  if (arch != AUDIT_ARCH_I386 && arch != AUDIT_ARCH_X86_64) return nullptr;
  const bool x32 = (number & kX32Bit) != 0;
  const auto column = arch == AUDIT_ARCH_I386 ? &CallRow::i386
                      : x32                   ? &CallRow::x32
                                              : &CallRow::x86_64;
  const int wanted = number & ~kX32Bit;
  for (const CallRow& row : kCalls) {
    if (row.*column == wanted) return &row;
  }
  return nullptr;
}

std::span<const CallToStop> calls_to_stop(std::uint32_t arch) {
  if (arch == AUDIT_ARCH_X86_64) return kStopped64;
  if (arch == AUDIT_ARCH_I386) return kStopped32;
  return {};
}

}  // namespace assay::collect
