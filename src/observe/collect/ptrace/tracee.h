// Tracee: what is asked of a stopped thread through ptrace, and what is changed in it. A tracee can
// be killed at any moment, and then every request fails: its end will be reported.
#pragma once

#include <sys/ptrace.h>
#include <sys/types.h>

#include <cstdint>

#include "observe/collect/call/path_call.h"

namespace assay::collect::tracee {

// For PTRACE_SEIZE.
unsigned long options();

long request(__ptrace_request what, pid_t thread, std::uintptr_t address = 0,
             std::uintptr_t data = 0);
// False if it is gone.
bool call_info(pid_t thread, __ptrace_syscall_info& info);
unsigned long event_message(pid_t thread);

// The call of a seccomp stop.
SystemCall call_of(const __ptrace_syscall_info& info);
bool same_process(pid_t process, pid_t thread);

// The child that the thread is about to make would be under the filter without a tracer, so it is
// traced whatever the call asks for.
void trace_child(pid_t thread, const __ptrace_syscall_info& info);
// A file that the call has just made as `fd` gets the stamp that it could not have before.
void stamp_created(pid_t thread, long fd, Effect& effect);

}  // namespace assay::collect::tracee
