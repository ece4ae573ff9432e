#include "observe/collect/ptrace/loop.h"

#include <poll.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "observe/collect/call/remote_status.h"
#include "observe/collect/event/clock.h"
#include "observe/collect/ptrace/stop_waiter.h"

namespace assay::collect {
namespace {

using wire::Op;

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

Outcome TraceLoop::run() {
  threads_[root_] = {.process = root_};
  processes_[root_] = {.parent = ::getpid()};
  StopWaiter waiter;
  for (StopWaiter::Stop stop = waiter.next(); stop.thread >= 0; stop = waiter.next()) {
    if (stop.thread == 0) {
      look_up();
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

// From time to time, whatever the command does.
void TraceLoop::look_up() {
  if (!recording_) return;
  sink_.meanwhile();
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

}  // namespace assay::collect
