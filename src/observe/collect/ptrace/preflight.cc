// Whether the ptrace collector works here: tried on a child, because what forbids it (Yama, a
// container's policy, an old kernel) is not written in one place.
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>

#include "observe/collect/gate/gate.h"
#include "observe/collect/ptrace/ptrace.h"

namespace assay::collect {
namespace {

// Why a child cannot be traced; empty if it can.
std::string trial() {
  if (under_another_gate()) return "another `assay run`, or a sandbox, stops the calls first";
  const std::uint32_t action = SECCOMP_RET_TRACE;
  if (::syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) != 0) {
    return "seccomp filters that stop for a tracer are not available: Linux 4.14 or newer is "
           "needed";
  }
  const pid_t child = ::fork();
  if (child < 0) return std::string("cannot start a process: ") + std::strerror(errno);
  if (child == 0) {
    for (;;) ::pause();
  }
  std::string reason;
  if (::ptrace(PTRACE_SEIZE, child, nullptr, nullptr) != 0) {
    reason = std::string("ptrace is not permitted here: ") + std::strerror(errno) +
             "; see /proc/sys/kernel/yama/ptrace_scope, or the container's seccomp profile";
  } else {
    __ptrace_syscall_info info{};
    ::ptrace(PTRACE_INTERRUPT, child, nullptr, nullptr);
    ::waitpid(child, nullptr, __WALL);
    if (::ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof info, &info) <= 0) {
      reason = "PTRACE_GET_SYSCALL_INFO is not available: Linux 5.3 or newer is needed";
    }
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, __WALL);
  return reason;
}

}  // namespace

Preflight ptrace_preflight() {
  Preflight result{.tracer = Tracer::kPtrace};
  utsname system{};
  ::uname(&system);
#ifndef __x86_64__
  result.reason = std::string("only x86-64 is supported, this is ") + system.machine;
  return result;
#else
  const std::string why_not = trial();
  result.available = why_not.empty();
  result.reason = result.available ? "a child process can be traced" : why_not;
  result.notes = {std::string("Linux ") + system.release,
                  "needs no privileges; every file operation stops the process",
                  "a debugger, or another tracer, cannot be used inside the command",
                  "if the collector is killed, the command is killed too"};
  return result;
#endif
}

}  // namespace assay::collect
