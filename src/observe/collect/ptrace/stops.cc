// The stops of a traced thread: what each one means, what is told of it, and how it goes on.
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utility>

#include "observe/collect/ptrace/filter.h"
#include "observe/collect/ptrace/loop.h"
#include "observe/collect/ptrace/tracee.h"

namespace assay::collect {
namespace {

// A file that is there and may be read is opened, whatever the moment of the result brings: judged
// as the gate judges, such a call is stopped once and not twice.
bool is_certain_read(const Effect& effect) {
  return effect.will_succeed && effect.ahead.empty() && effect.told.size() == 1 &&
         effect.told.front().op == wire::Op::kRead && effect.told.front().flags == 0;
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
      // Stopped by a signal for run control: it stays so until it is continued, and only then
      // reports again. Otherwise it is new.
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
  if (is_certain_read(*state.pending)) {
    tell(thread, state, *std::exchange(state.pending, std::nullopt));
    return;
  }
  for (const Effect::Ahead& ahead : state.pending->ahead) {
    sink_.about_to_change(ahead.path, ahead.stamp, ahead.change);
  }
  if (state.pending->told.empty()) state.pending.reset();
}

void TraceLoop::at_result(pid_t thread, Thread& state) {
  std::optional<Effect> effect = std::exchange(state.pending, std::nullopt);
  if (!effect) return;
  __ptrace_syscall_info info{};
  if (!tracee::call_info(thread, info) || info.op != PTRACE_SYSCALL_INFO_EXIT) return;
  if (info.exit.is_error != 0) return;
  tracee::stamp_created(thread, info.exit.rval, *effect);
  tell(thread, state, *effect);
}

void TraceLoop::at_exec(pid_t thread, Thread& state) {
  // A thread that is not the first takes its place, and its number is gone.
  const auto former = static_cast<pid_t>(tracee::event_message(thread));
  if (former != thread) {
    state.pending = known(former).pending;
    threads_.erase(former);
  }
  if (thread == root_ && !std::exchange(started_, true)) {
    append_inherited(inherited_, root_, log_);
    tell({.op = wire::Op::kProcess, .thread = root_, .process = root_, .parent = ::getpid()});
    control_.started(root_, -1);
  }
  const std::optional<Effect> effect = std::exchange(state.pending, std::nullopt);
  if (effect) tell(thread, state, *effect);
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
  // With something to tell, up to the result of the call; else up to the next call of interest.
  tracee::request(state.pending ? PTRACE_SYSCALL : PTRACE_CONT, thread, 0,
                  static_cast<std::uintptr_t>(signal));
}

}  // namespace assay::collect
