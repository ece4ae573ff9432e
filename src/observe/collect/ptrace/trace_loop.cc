#include "observe/collect/ptrace/trace_loop.h"

#include <poll.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "observe/collect/call/remote_status.h"
#include "observe/collect/event/event.h"
#include "observe/collect/ptrace/stop_waiter.h"
#include "observe/collect/ptrace/trace_filter.h"
#include "observe/collect/ptrace/tracee.h"

namespace assay::collect {
namespace {

using wire::RecordOp;

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

}  // namespace

CollectorResult TraceLoop::run() {
  threads_[root_] = {.process = root_};
  processes_[root_] = {.parent = ::getpid()};
  StopWaiter waiter;
  for (StopWaiter::Stop stop = waiter.next(); stop.thread >= 0; stop = waiter.next()) {
    if (stop.thread == 0) {
      on_tick();
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

void TraceLoop::on_tick() {
  if (!recording_) return;
  sink_.on_tick();
  pollfd keeper{watched_ ? control_.keeper : -1, POLLIN, 0};
  if (::poll(&keeper, 1, 0) <= 0) return;
  watched_ = false;
  if (control_.detached()) return;
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
    record({.op = RecordOp::kExit,
            .thread = thread,
            .process = thread,
            .parent = parent,
            .value = status});
  }
  // The kernel's count for a process includes the children it waited for. No process of the command
  // waits for orphans.
  if (thread == root_ || !processes_.contains(parent)) add_usage(outcome_.usage, usage);
  if (thread == root_) {
    outcome_.wait_status = status;
    if (started_) control_.ended(status);
  }
}

TraceLoop::Thread& TraceLoop::known(pid_t thread) {
  const auto found = threads_.find(thread);
  if (found != threads_.end()) return found->second;
  // A new thread whose first stop arrived before its parent's fork event. The parent may have
  // exited by now, and the thread may exit before that event arrives.
  early_.insert(thread);
  const RemoteStatus status = read_remote_status(thread);
  const pid_t process = status.valid && status.process != 0 ? status.process : thread;
  if (process == thread) add_process(process, status.parent);
  return threads_[thread] = {.process = process};
}

void TraceLoop::add_process(pid_t process, pid_t parent) {
  processes_[process] = {.parent = parent};
  record({.op = RecordOp::kProcess, .thread = process, .process = process, .parent = parent});
}

void TraceLoop::record(pid_t thread, const Thread& state, const CallEffect& effect) {
  const auto process = processes_.find(state.process);
  const pid_t parent = process == processes_.end() ? 0 : process->second.parent;
  for (const CallEffect::ExpectedEvent& event : effect.events) {
    record({.op = event.op,
            .flags = event.flags,
            .thread = thread,
            .process = state.process,
            .parent = parent,
            .stamp = event.stamp,
            .path = event.path,
            .other = event.other});
  }
}

void TraceLoop::record(Event event) {
  if (!recording_) return;
  event.source = wire::Source::kPtrace;
  event.time_ns = monotonic_ns();
  log_.append(event);
  log_.drain(sink_);
}

namespace {

// Whether the result is certain before the call: an existing readable file or folder is opened, or
// the file does not exist. Then the event is recorded at the start of the call, as by the gate,
// which saves the second stop.
bool is_certain(const CallEffect& effect) {
  if (effect.reports_failure) return true;
  if (!effect.will_succeed || !effect.changes.empty() || effect.events.size() != 1) return false;
  const CallEffect::ExpectedEvent& event = effect.events.front();
  return event.op == wire::RecordOp::kList || event.op == wire::RecordOp::kQueried ||
         (event.op == wire::RecordOp::kRead && event.flags == 0);
}

}  // namespace

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
      // Group-stop by a signal: it stays stopped until continued. Otherwise the thread is new.
      if (signal != SIGTRAP) {
        tracee::request(PTRACE_LISTEN, thread);
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
  if (!tracee::call_info(thread, info) || info.op != PTRACE_SYSCALL_INFO_SECCOMP) return;
  if (info.seccomp.ret_data == static_cast<unsigned>(TraceReason::kClone)) {
    tracee::trace_child(thread, info);
    return;
  }
  if (!recording_) return;
  state.pending = effect_of(thread, tracee::call_of(info));
  if (!state.pending) return;
  if (is_certain(*state.pending)) {
    record(thread, state, *std::exchange(state.pending, std::nullopt));
    return;
  }
  for (const CallEffect::PendingChange& coming : state.pending->changes) {
    sink_.before_change(coming.path, coming.stamp, coming.change);
  }
  if (state.pending->events.empty()) state.pending.reset();
}

void TraceLoop::at_result(pid_t thread, Thread& state) {
  std::optional<CallEffect> effect = std::exchange(state.pending, std::nullopt);
  if (!effect) return;
  __ptrace_syscall_info info{};
  if (!tracee::call_info(thread, info) || info.op != PTRACE_SYSCALL_INFO_EXIT) return;
  if (info.exit.is_error != 0) return;
  if (effect->opens_result) tracee::stamp_created(thread, info.exit.rval, *effect);
  record(thread, state, *effect);
}

void TraceLoop::at_exec(pid_t thread, Thread& state) {
  // If a thread other than the first calls exec, it takes over the first one's id.
  const auto former = static_cast<pid_t>(tracee::event_message(thread));
  if (former != thread) {
    state.pending = known(former).pending;
    threads_.erase(former);
  }
  if (thread == root_ && !std::exchange(started_, true)) {
    append_inherited(inherited_, root_, log_);
    record(
        {.op = wire::RecordOp::kProcess, .thread = root_, .process = root_, .parent = ::getpid()});
    control_.started(root_, -1);
  }
  const std::optional<CallEffect> effect = std::exchange(state.pending, std::nullopt);
  if (effect) record(thread, state, *effect);
}

void TraceLoop::at_fork(pid_t thread, const Thread& state) {
  const auto child = static_cast<pid_t>(tracee::event_message(thread));
  if (child <= 0 || early_.erase(child) != 0) return;
  const pid_t process = state.process;
  if (tracee::same_process(process, child)) {
    threads_[child] = {.process = process};
  } else {
    threads_[child] = {.process = child};
    add_process(child, process);
  }
}

void TraceLoop::resume(pid_t thread, const Thread& state, int signal) {
  // With a pending effect, up to the result of the call; else up to the next call of interest.
  tracee::request(state.pending ? PTRACE_SYSCALL : PTRACE_CONT, thread, 0,
                  static_cast<std::uintptr_t>(signal));
}

}  // namespace assay::collect
