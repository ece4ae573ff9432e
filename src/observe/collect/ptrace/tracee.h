// ptrace requests to a stopped thread, and changes to it. A tracee can be killed at any moment;
// every request fails then, and its end will be reported.
#pragma once

#include <sys/ptrace.h>
#include <sys/types.h>

#include <cstdint>

#include "observe/collect/call/stopped_call.h"

namespace assay::collect::tracee {

// For PTRACE_SEIZE.
unsigned long options();

long request(__ptrace_request what, pid_t thread, std::uintptr_t address = 0,
             std::uintptr_t data = 0);
// False if it has been killed.
bool call_info(pid_t thread, __ptrace_syscall_info& info);
unsigned long event_message(pid_t thread);

// The call of a seccomp stop.
SystemCall call_of(const __ptrace_syscall_info& info);
bool same_process(pid_t process, pid_t thread);

// A child under the filter needs a tracer, so it is traced even if the clone call requests
// otherwise.
void trace_child(pid_t thread, const __ptrace_syscall_info& info);
// Sets the stamp of a file that the call has just created as `fd`.
void stamp_created(pid_t thread, long fd, CallEffect& effect);

}  // namespace assay::collect::tracee
