// The next definition of each function that the shim replaces. Usually that is the C library's,
// whose work the shim does itself. But another library may define the function in between: one of
// /etc/ld.so.preload or later in LD_PRELOAD, a sanitizer, or one that the program links. Then that
// function is called, and the gate sees the resulting system calls.
#pragma once

#include "observe/shim/shim.h"

namespace assay::shim {

enum class Function : std::uint8_t {
  kOpen,
  kOpen64,
  kOpenat,
  kOpenat64,
  kCreat,
  kCreat64,
  kOpen2,
  kOpen64_2,
  kOpenat2,
  kOpenat64_2,
  kFopen,
  kFopen64,
  kRename,
  kRenameat,
  kRenameat2,
  kLink,
  kLinkat,
  kUnlink,
  kUnlinkat,
  kTruncate,
  kTruncate64,
  kChdir,
  kFchdir,
  kChroot,
  kUnshare,
  kSetns,
  kFork,
  kWait,
  kWaitpid,
  kWait3,
  kWait4,
  kWaitid,
  kStat,
  kStat64,
  kLstat,
  kLstat64,
  kFstatat,
  kFstatat64,
  kAccess,
  kStatx,
  kXstat,
  kXstat64,
  kLxstat,
  kLxstat64,
  kFxstatat,
  kFxstatat64,
  kFaccessat,
  kEuidaccess,
  kEaccess,
  kReadlink,
  kReadlinkat,
  kReadlinkChk,
  kReadlinkatChk,
  kRealpath,
  kRealpathChk,
  kCanonicalizeFileName,
  kOpendir,
  kFdopendir,
  kGetdents64,
  kFutimens,
  kConnect,
  kGetaddrinfo,
  kClose,
  // From here on the next definition is called in any case, so it is not looked for at the start.
  kExecve,
  kExecv,
  kExecvp,
  kExecvpe,
  kFexecve,
  kExecveat,
  kPosixSpawn,
  kPosixSpawnp,
  kSystem,
  kPopen,
  kRemove,
  kMkfifo,
  kMknod,
  kUtime,
  kUtimes,
  kUtimensat,
  kFreopen,
  kFreopen64,
  kTmpfile,
  kTmpfile64,
  kMkstemp,
  kMkstemp64,
  kMkostemp,
  kMkostemp64,
};
inline constexpr int kOtherFunctions = static_cast<int>(Function::kClose) + 1;
inline constexpr int kFunctions = static_cast<int>(Function::kMkostemp64) + 1;

// The next definition, or null where that is the C library's.
extern constinit void* others[kOtherFunctions];

// Fills `others`: once, when the shim starts. Reads the loader's tables and makes no system call.
void find_others();

// The function of another library that must be called instead of doing the work here, or null.
// Starts the shim if necessary, because `others` is filled only then.
template <typename Signature>
inline Signature* other(Function function) {
  on();
  return reinterpret_cast<Signature*>(others[static_cast<int>(function)]);
}

// The next definition in any case.
void* next_of(Function function);

// The same, looked up once.
template <typename Signature>
Signature* next_once(Function function) {
  static std::atomic<void*> found[kFunctions];
  std::atomic<void*>& mine = found[static_cast<int>(function)];
  void* next = mine.load(std::memory_order_relaxed);
  if (next == nullptr) mine.store(next = next_of(function), std::memory_order_relaxed);
  return reinterpret_cast<Signature*>(next);
}

}  // namespace assay::shim
