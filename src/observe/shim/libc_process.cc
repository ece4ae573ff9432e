// Children are recorded by their parent: it knows their pid after fork and their status after wait,
// and has the log mapped already, so it costs the child nothing. Children created in other ways
// (vfork, posix_spawn) call exec, which the gate sees.
#include <dlfcn.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "observe/shim/event.h"
#include "observe/shim/libc_exec.h"
#include "observe/shim/next_definition.h"
#include "observe/shim/own_guard.h"
#include "observe/shim/shim.h"

namespace assay::shim {
namespace {

void ended(pid_t child, int status) {
  if (child <= 0 || !(WIFEXITED(status) || WIFSIGNALED(status))) return;
  if (on() && log_ready()) record_child(wire::RecordOp::kExit, child, status, monotonic_ns());
}

// What the child may need and must not do itself.
void before_fork() {
  find_exec();
  start_own_guard_if_deserted();
}

}  // namespace
}  // namespace assay::shim

using assay::shim::ended;
using assay::shim::Function;
using assay::shim::next_once;

extern "C" {

ASSAY_EXPORTED pid_t fork() noexcept {
  // The time before fork: everything the child does is later.
  const std::int64_t begun = assay::shim::on() ? assay::shim::monotonic_ns() : 0;
  if (begun != 0) assay::shim::before_fork();
  const pid_t child = next_once<pid_t()>(Function::kFork)();
  if (child > 0 && begun != 0 && assay::shim::on() && assay::shim::log_ready()) {
    assay::shim::record_child(assay::wire::RecordOp::kProcess, child, 0, begun);
  }
  return child;
}

ASSAY_EXPORTED pid_t wait(int* status) {
  int result = 0;
  const pid_t child = next_once<pid_t(int*)>(Function::kWait)(&result);
  ended(child, result);
  if (status != nullptr && child > 0) *status = result;
  return child;
}
ASSAY_EXPORTED pid_t waitpid(pid_t which, int* status, int options) {
  int result = 0;
  const pid_t child =
      next_once<pid_t(pid_t, int*, int)>(Function::kWaitpid)(which, &result, options);
  ended(child, result);
  if (status != nullptr && child > 0) *status = result;
  return child;
}
ASSAY_EXPORTED pid_t wait3(int* status, int options, struct rusage* usage) noexcept {
  int result = 0;
  const pid_t child =
      next_once<pid_t(int*, int, struct rusage*)>(Function::kWait3)(&result, options, usage);
  ended(child, result);
  if (status != nullptr && child > 0) *status = result;
  return child;
}
ASSAY_EXPORTED pid_t wait4(pid_t which, int* status, int options, struct rusage* usage) noexcept {
  int result = 0;
  const pid_t child = next_once<pid_t(pid_t, int*, int, struct rusage*)>(Function::kWait4)(
      which, &result, options, usage);
  ended(child, result);
  if (status != nullptr && child > 0) *status = result;
  return child;
}
ASSAY_EXPORTED int waitid(idtype_t type, id_t which, siginfo_t* info, int options) {
  const int result = next_once<int(idtype_t, id_t, siginfo_t*, int)>(Function::kWaitid)(
      type, which, info, options);
  if (result != 0 || info == nullptr || info->si_pid == 0) return result;
  if (info->si_code == CLD_EXITED) ended(info->si_pid, (info->si_status & 0xFF) << 8);
  if (info->si_code == CLD_KILLED || info->si_code == CLD_DUMPED) {
    ended(info->si_pid, info->si_status | (info->si_code == CLD_DUMPED ? 0x80 : 0));
  }
  return result;
}

// Remembers that vfork was called, and returns the C library's vfork.
[[gnu::used]] void* assay_shim_before_vfork() {
  assay::shim::shim.vforks.store(true, std::memory_order_relaxed);
  if (assay::shim::on()) assay::shim::before_fork();
  return dlsym(RTLD_NEXT, "vfork");
}

}  // extern "C"

// vfork is the one way in which two processes share a thread's memory while both call the shim.
// Once it has been called, a thread asks the kernel for its id at every event (event.cc).
//
// vfork returns twice into the same stack frame, so no frame of the shim may lie in between: it is
// jumped to, with the stack as the program left it.
asm(R"(
  .text
  .globl vfork
  .type vfork, @function
vfork:
  .cfi_startproc
  subq $8, %rsp
  .cfi_adjust_cfa_offset 8
  call assay_shim_before_vfork
  addq $8, %rsp
  .cfi_adjust_cfa_offset -8
  jmp *%rax
  .cfi_endproc
  .size vfork, . - vfork
)");
