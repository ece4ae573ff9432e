#include "observe/collect/ptrace/tracee.h"

#include <fmt/format.h>
#include <linux/audit.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <string>

#include "observe/collect/call/remote_memory.h"
#include "observe/collect/event/event.h"
#include "observe/collect/ptrace/trace_filter.h"

namespace assay::collect::tracee {

unsigned long options() {
  // EXITKILL: without its tracer the stopped calls fail in unexpected ways (trace_filter.h), and
  // the command could continue with wrong results.
  return PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACESECCOMP | PTRACE_O_TRACEFORK |
         PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC;
}

long request(__ptrace_request what, pid_t thread, std::uintptr_t address, std::uintptr_t data) {
  return ::ptrace(what, thread, address, data);
}

bool call_info(pid_t thread, __ptrace_syscall_info& info) {
  return request(PTRACE_GET_SYSCALL_INFO, thread, sizeof info,
                 reinterpret_cast<std::uintptr_t>(&info)) > 0;
}

unsigned long event_message(pid_t thread) {
  unsigned long message = 0;
  request(PTRACE_GETEVENTMSG, thread, 0, reinterpret_cast<std::uintptr_t>(&message));
  return message;
}

SystemCall call_of(const __ptrace_syscall_info& info) {
  SystemCall call{.arch = info.arch, .number = static_cast<int>(info.seccomp.nr)};
  std::copy_n(info.seccomp.args, call.arguments.size(), call.arguments.begin());
  return call;
}

bool same_process(pid_t process, pid_t thread) {
  return ::syscall(SYS_tgkill, process, thread, 0) == 0;
}

void trace_child(pid_t thread, const __ptrace_syscall_info& info) {
  if ((static_cast<int>(info.seccomp.nr) & 0xFFFF) == kClone3) {
    std::uint64_t flags = 0;
    if (read_remote(thread, info.seccomp.args[0], &flags, sizeof flags) != 0) return;
    if ((flags & CLONE_UNTRACED) == 0) return;
    request(PTRACE_POKEDATA, thread, info.seccomp.args[0], flags & ~std::uint64_t{CLONE_UNTRACED});
    return;
  }
  // The first argument: rdi, or ebx of a 32-bit call.
  const std::size_t argument = info.arch == AUDIT_ARCH_I386 ? offsetof(user_regs_struct, rbx)
                                                            : offsetof(user_regs_struct, rdi);
  request(PTRACE_POKEUSER, thread, argument, info.seccomp.args[0] & ~std::uint64_t{CLONE_UNTRACED});
}

void stamp_created(pid_t thread, long fd, CallEffect& effect) {
  for (CallEffect::ExpectedEvent& event : effect.events) {
    if (event.op != wire::RecordOp::kCreate) continue;
    const std::string link = fmt::format("/proc/{}/fd/{}", thread, fd);
    struct stat status {};
    if (::stat(link.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    event.stamp = stamp_of(status);
    event.flags = static_cast<std::uint16_t>(event.flags & ~wire::flag::kNoStamp);
  }
}

}  // namespace assay::collect::tracee
