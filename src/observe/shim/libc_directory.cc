// Calls after which names mean other files: a change of directory, of root, of namespace. They are
// made as the program made them; we only take note.
#include <errno.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "observe/shim/exported.h"
#include "observe/shim/shim.h"
#include "observe/shim/system_call.h"

namespace assay::shim {
namespace {

int like_libc(long result) {
  if (!failed(result)) return static_cast<int>(result);
  errno = static_cast<int>(-result);
  return -1;
}

// From the gate, so that a collector that watches for changes of directory behind our back (raw
// system calls, the C library's own) sees only those.
int move(long number, long where) {
  if (!on()) return like_libc(ordinary_call(number, where));
  shim.moves.fetch_add(1, std::memory_order_acq_rel);
  const long result = gate_call(number, where);
  shim.moves.fetch_add(kMoved - 1, std::memory_order_acq_rel);
  return like_libc(result);
}

int change_root(long number, long a, long b = 0) {
  const int result = like_libc(ordinary_call(number, a, b));
  if (result == 0) {
    shim.moves.fetch_add(kMoved, std::memory_order_acq_rel);
    check_root();
  }
  return result;
}

}  // namespace
}  // namespace assay::shim

extern "C" {

ASSAY_EXPORTED int chdir(const char* path) noexcept {
  return assay::shim::move(SYS_chdir, assay::shim::word(path));
}
ASSAY_EXPORTED int fchdir(int directory) noexcept {
  return assay::shim::move(SYS_fchdir, directory);
}
ASSAY_EXPORTED int chroot(const char* path) noexcept {
  return assay::shim::change_root(SYS_chroot, assay::shim::word(path));
}
ASSAY_EXPORTED int unshare(int what) noexcept {
  const int result = assay::shim::change_root(SYS_unshare, what);
  // Threads have directories of their own now: as if one were always being changed.
  if (result == 0 && (what & CLONE_FS) != 0) assay::shim::shim.moves.fetch_add(1);
  return result;
}
ASSAY_EXPORTED int setns(int file, int what) noexcept {
  return assay::shim::change_root(SYS_setns, file, what);
}

}  // extern "C"
