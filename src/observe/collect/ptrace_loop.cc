#include "observe/collect/ptrace_loop.h"

#include <fmt/format.h>
#include <linux/audit.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <string>
#include <utility>

#include "observe/collect/clock.h"
#include "observe/collect/ptrace_filter.h"
#include "observe/collect/remote_memory.h"
#include "observe/collect/remote_status.h"
#include "observe/collect/stamp.h"
#include "observe/collect/stop_waiter.h"

namespace assay::collect {
namespace {

using wire::Op;

// A tracee can be killed at any moment, and then every request fails: its end will be reported.
long request(__ptrace_request what, pid_t thread, std::uintptr_t address = 0,
             std::uintptr_t data = 0) {
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

void add_time(timeval& sum, const timeval& more) {
  const timeval before = sum;
  timeradd(&before, &more, &sum);
}

void add_usage(struct rusage& sum, const struct rusage& more) {
  add_time(sum.ru_utime, more.ru_utime);
  add_time(sum.ru_stime, more.ru_stime);
  sum.ru_maxrss = std::max(sum.ru_maxrss, more.ru_maxrss);
  sum.ru_minflt += more.ru_minflt;
  sum.ru_majflt += more.ru_majflt;
  sum.ru_inblock += more.ru_inblock;
  sum.ru_oublock += more.ru_oublock;
  sum.ru_nvcsw += more.ru_nvcsw;
  sum.ru_nivcsw += more.ru_nivcsw;
}

// The child would be under the filter without a tracer, so it is traced whatever it asks for.
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

// A file that the call has just made gets the stamp that it could not have before.
void stamp_created(pid_t thread, long fd, Effect& effect) {
  for (Effect::Told& told : effect.told) {
    if (told.op != Op::kCreate) continue;
    const std::string link = fmt::format("/proc/{}/fd/{}", thread, fd);
    struct stat status {};
    if (::stat(link.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    told.stamp = stamp_of(status);
    told.flags = static_cast<std::uint16_t>(told.flags & ~wire::flag::kNoStamp);
  }
}

}  // namespace

unsigned long trace_options() {
  // Without us the calls that the filter stops fail in ways that no program expects (see
  // ptrace_filter.h), and it could go on to wrong results. So it goes with us.
  return PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACESECCOMP | PTRACE_O_TRACEFORK |
         PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC;
}

Outcome TraceLoop::run() {
  threads_[root_] = {.process = root_};
  processes_[root_] = {.parent = ::getpid()};
  StopWaiter waiter(control_.keeper >= 0);
  for (StopWaiter::Stop stop = waiter.next(); stop.thread >= 0; stop = waiter.next()) {
    if (stop.thread == 0) {
      look_for_keeper();
    } else if (WIFSTOPPED(stop.status)) {
      stopped(stop.thread, stop.status);
    } else {
      ended(stop.thread, stop.status, stop.usage);
    }
  }
  if (recording_) log_.finish(sink_);
  outcome_.dropped = log_.header().dropped;
  return std::move(outcome_);
}

void TraceLoop::look_for_keeper() {
  pollfd keeper{control_.keeper, POLLIN, 0};
  if (!recording_ || ::poll(&keeper, 1, 0) <= 0) return;
  log_.drain(sink_);
  control_.abandoned();
  recording_ = false;
}

void TraceLoop::ended(pid_t thread, int status, const struct rusage& usage) {
  threads_.erase(thread);
  const auto process = processes_.find(thread);
  if (process == processes_.end()) return;  // one thread of several
  const pid_t parent = process->second.parent;
  processes_.erase(process);
  if (thread != root_ || started_) {
    tell({.op = Op::kExit, .thread = thread, .process = thread, .parent = parent, .value = status});
  }
  // What the kernel counted for a process contains the children it waited for. Nobody of the
  // command waits for its orphans.
  if (thread == root_ || !processes_.contains(parent)) add_usage(outcome_.usage, usage);
  if (thread == root_) {
    outcome_.wait_status = status;
    if (started_) control_.ended(status);
  }
}

void TraceLoop::stopped(pid_t thread, int status) {
  Thread& state = known(thread);
  const int signal = WSTOPSIG(status);
  const int event = status >> 16;
  switch (event) {
    case PTRACE_EVENT_SECCOMP:
      at_call(thread, state);
      break;
    case PTRACE_EVENT_EXEC:
      at_exec(thread, state);
      break;
    case PTRACE_EVENT_FORK:
    case PTRACE_EVENT_VFORK:
    case PTRACE_EVENT_CLONE:
      at_fork(thread, state);
      break;
    case PTRACE_EVENT_STOP:
      // Stopped by a signal for job control: it stays so until it is continued, and only then
      // reports again. Otherwise it is new.
      if (signal != SIGTRAP) {
        request(PTRACE_LISTEN, thread);
        return;
      }
      break;
    default:
      if (signal == (SIGTRAP | 0x80)) {
        at_result(thread, state);
      } else if (event == 0) {
        resume(thread, state, signal);
        return;
      }
      break;
  }
  resume(thread, state);
}

void TraceLoop::at_call(pid_t thread, Thread& state) {
  state.pending.reset();
  __ptrace_syscall_info info{};
  if (!call_info(thread, info) || info.op != PTRACE_SYSCALL_INFO_SECCOMP) return;
  if (info.seccomp.ret_data == static_cast<unsigned>(TraceReason::kClone)) {
    trace_child(thread, info);
    return;
  }
  if (!recording_) return;
  state.pending = effect_of(thread, call_of(info));
  if (!state.pending) return;
  for (const Effect::Ahead& ahead : state.pending->ahead) {
    sink_.about_to_change(ahead.path, ahead.stamp, ahead.change);
  }
}

void TraceLoop::at_result(pid_t thread, Thread& state) {
  std::optional<Effect> effect = std::exchange(state.pending, std::nullopt);
  if (!effect) return;
  __ptrace_syscall_info info{};
  if (!call_info(thread, info) || info.op != PTRACE_SYSCALL_INFO_EXIT) return;
  if (info.exit.is_error != 0) return;
  stamp_created(thread, info.exit.rval, *effect);
  tell(thread, state, *effect);
}

void TraceLoop::at_exec(pid_t thread, Thread& state) {
  // A thread that is not the first takes its place, and its number is gone.
  const auto former = static_cast<pid_t>(event_message(thread));
  if (former != thread) {
    state.pending = known(former).pending;
    threads_.erase(former);
  }
  if (thread == root_ && !std::exchange(started_, true)) {
    append_inherited(inherited_, root_, log_);
    tell({.op = Op::kProcess, .thread = root_, .process = root_, .parent = ::getpid()});
    control_.started(root_, -1);
  }
  const std::optional<Effect> effect = std::exchange(state.pending, std::nullopt);
  if (effect) tell(thread, state, *effect);
}

void TraceLoop::at_fork(pid_t thread, const Thread& state) {
  const auto child = static_cast<pid_t>(event_message(thread));
  if (child <= 0 || early_.erase(child) != 0) return;
  const pid_t process = state.process;
  if (same_process(process, child)) {
    threads_[child] = {.process = process};
  } else {
    threads_[child] = {.process = child};
    add_process(child, process);
  }
}

TraceLoop::Thread& TraceLoop::known(pid_t thread) {
  const auto found = threads_.find(thread);
  if (found != threads_.end()) return found->second;
  // New, and its first stop was seen before its parent's, who may be dead by now. It may even have
  // ended when the parent's turn comes.
  early_.insert(thread);
  const RemoteStatus status = read_remote_status(thread);
  const pid_t process = status.valid && status.process != 0 ? status.process : thread;
  if (process == thread) add_process(process, status.parent);
  return threads_[thread] = {.process = process};
}

void TraceLoop::add_process(pid_t process, pid_t parent) {
  processes_[process] = {.parent = parent};
  tell({.op = Op::kProcess, .thread = process, .process = process, .parent = parent});
}

void TraceLoop::tell(pid_t thread, const Thread& state, const Effect& effect) {
  const auto process = processes_.find(state.process);
  const pid_t parent = process == processes_.end() ? 0 : process->second.parent;
  for (const Effect::Told& told : effect.told) {
    tell({.op = told.op,
          .flags = told.flags,
          .thread = thread,
          .process = state.process,
          .parent = parent,
          .stamp = told.stamp,
          .path = told.path,
          .other = told.other});
  }
}

void TraceLoop::tell(Event event) {
  if (!recording_) return;
  event.source = wire::Source::kPtrace;
  event.time_ns = monotonic_ns();
  log_.append(event);
  log_.drain(sink_);
}

void TraceLoop::resume(pid_t thread, const Thread& state, int signal) {
  // With something to tell, up to the result of the call; else up to the next call of interest.
  request(state.pending ? PTRACE_SYSCALL : PTRACE_CONT, thread, 0,
          static_cast<std::uintptr_t>(signal));
}

}  // namespace assay::collect
