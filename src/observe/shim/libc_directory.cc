// Calls after which names refer to other files: a change of directory, root or namespace. They are
// made unchanged, and counted.
#include <errno.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "observe/shim/next_definition.h"
#include "observe/shim/shim.h"
#include "observe/shim/system_call.h"

namespace assay::shim {
namespace {

int like_libc(long result) {
  if (!failed(result)) return static_cast<int>(result);
  errno = static_cast<int>(-result);
  return -1;
}

// From the gate, so that the collector sees only those changes of directory that bypass the shim
// (raw system calls, the C library's own).
template <typename Where>
int move(Function function, long number, Where where) {
  auto* next = other<int(Where)>(function);
  if (!on()) return next != nullptr ? next(where) : like_libc(ordinary_call(number, where));
  shim.moves.fetch_add(1, std::memory_order_acq_rel);
  const int result = next != nullptr ? next(where) : like_libc(gate_call(number, where));
  shim.moves.fetch_add(kMoved - 1, std::memory_order_acq_rel);
  return result;
}

int root_changed(int result) {
  if (result == 0) {
    shim.moves.fetch_add(kMoved, std::memory_order_acq_rel);
    check_root();
  }
  return result;
}

template <typename... Arguments>
int change_root(Function function, long number, Arguments... arguments) {
  if (auto* next = other<int(Arguments...)>(function)) return root_changed(next(arguments...));
  return root_changed(like_libc(ordinary_call(number, arguments...)));
}

}  // namespace
}  // namespace assay::shim

using assay::shim::change_root;
using assay::shim::Function;

extern "C" {

ASSAY_EXPORTED int chdir(const char* path) noexcept {
  return assay::shim::move(Function::kChdir, SYS_chdir, path);
}
ASSAY_EXPORTED int fchdir(int directory) noexcept {
  return assay::shim::move(Function::kFchdir, SYS_fchdir, directory);
}
ASSAY_EXPORTED int chroot(const char* path) noexcept {
  return change_root(Function::kChroot, SYS_chroot, path);
}
ASSAY_EXPORTED int unshare(int what) noexcept {
  const int result = change_root(Function::kUnshare, SYS_unshare, what);
  // Threads have their own directories now: treated as a change that never ends.
  if (result == 0 && (what & CLONE_FS) != 0) assay::shim::shim.moves.fetch_add(1);
  return result;
}
ASSAY_EXPORTED int setns(int file, int what) noexcept {
  return change_root(Function::kSetns, SYS_setns, file, what);
}

}  // extern "C"
