#include "observe/collect/process/reaper.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include "observe/collect/event/clock.h"
#include "observe/collect/process/launch.h"

namespace assay::collect {

Reaper::Reaper() {
  remember_signals();
  sigset_t child{};
  ::sigemptyset(&child);
  ::sigaddset(&child, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &child, nullptr);
  signals_.reset(::signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK));
}

bool Reaper::reap(pid_t command, Log& log) {
  signalfd_siginfo ignored{};
  while (::read(signals_.get(), &ignored, sizeof ignored) > 0) {
  }
  if (ended_ || ::wait4(command, &status_, WNOHANG, &usage_) != command) return false;
  ended_ = true;
  log.append({.op = wire::Op::kExit,
              .source = wire::Source::kGate,
              .thread = command,
              .process = command,
              .value = status_,
              .time_ns = monotonic_ns()});
  return true;
}

Outcome Reaper::outcome() const {
  Outcome out;
  out.wait_status = status_;
  out.usage = usage_;
  return out;
}

}  // namespace assay::collect
