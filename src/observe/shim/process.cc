// Forks are seen by the C library's own hook, which its other functions that fork go through as
// well; vfork and posix_spawn are followed by an exec, which the gate sees. An end is seen where
// the program ends itself. One that is killed is seen by the collector, if it knows the process.
#include "observe/shim/process.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "observe/shim/event.h"
#include "observe/shim/exported.h"
#include "observe/shim/next.h"
#include "observe/shim/system_call.h"

namespace assay::shim {
namespace {

// The process that is forking. Threads that fork at the same time write the same.
std::int32_t forking = 0;

void before_fork() {
  if (!on()) return;
  const std::int32_t known = shim.local->process.load(std::memory_order_relaxed);
  forking = known != 0 ? known : static_cast<std::int32_t>(gate_call(SYS_getpid));
}

void in_child() {
  if (on() && log_ready()) record_process(wire::Op::kProcess, 0, forking);
}

void ended(int code) {
  if (on() && log_ready()) record_process(wire::Op::kExit, (code & 0xFF) << 8, 0);
}

void at_exit(int code, void*) {
  ended(code);
}

[[noreturn]] void exit_now(Function function, int code) {
  auto* next = other<void(int)>(function);
  ended(code);
  if (next != nullptr) next(code);
  for (;;) ordinary_call(SYS_exit_group, code);
}

}  // namespace

void watch_process() {
  pthread_atfork(before_fork, nullptr, in_child);
  on_exit(at_exit, nullptr);
}

}  // namespace assay::shim

extern "C" {

ASSAY_EXPORTED void _exit(int code) {
  assay::shim::exit_now(assay::shim::Function::kExitNow, code);
}
ASSAY_EXPORTED void _Exit(int code) noexcept {
  assay::shim::exit_now(assay::shim::Function::kExitNowC, code);
}

}  // extern "C"
