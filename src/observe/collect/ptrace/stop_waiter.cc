#include "observe/collect/ptrace/stop_waiter.h"

#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "observe/collect/event/event.h"

// glibc before 2.41 has no name for the field.
#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

namespace assay::collect {
namespace {

// Ignored by default, so that a stray one is harmless.
constexpr int kSignal = SIGURG;
constexpr long kTickInterval_ns = 100'000'000;

// Only this thread's tracees and children; other threads wait for their own.
constexpr int kWhom = __WALL | __WNOTHREAD;

// How long to poll before sleeping. A CPU that goes idle between the two stops of a call takes
// longer to wake than the call itself, above all in a virtual machine.
constexpr std::int64_t kPollNs = 20'000;
constexpr int kPollsMissedInARow = 8;  // then the program is computing: poll only occasionally

volatile std::sig_atomic_t tick_due = 0;

void interrupt(int) {
  tick_due = 1;
}

pid_t wait(StopWaiter::Stop& stop, int flags) {
  stop.thread = ::wait4(-1, &stop.status, kWhom | flags, &stop.usage);
  return stop.thread;
}

}  // namespace

StopWaiter::StopWaiter() {
  cpu_set_t processors;
  may_poll_ =
      ::sched_getaffinity(0, sizeof processors, &processors) != 0 || CPU_COUNT(&processors) > 1;
  struct sigaction action {};
  action.sa_handler = interrupt;  // without SA_RESTART: the wait returns
  ::sigaction(kSignal, &action, &former_);
  struct sigevent event {};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = kSignal;
  event.sigev_notify_thread_id = static_cast<pid_t>(::syscall(SYS_gettid));
  has_timer_ = ::timer_create(CLOCK_MONOTONIC, &event, &timer_) == 0;
  const itimerspec every{{0, kTickInterval_ns}, {0, kTickInterval_ns}};
  if (has_timer_) ::timer_settime(timer_, 0, &every, nullptr);
}

StopWaiter::~StopWaiter() {
  if (!has_timer_) return;
  ::timer_delete(timer_);
  ::sigaction(kSignal, &former_, nullptr);
}

bool StopWaiter::poll_briefly(Stop& stop) {
  if (!may_poll_ || (polls_missed_ >= kPollsMissedInARow && ++polls_missed_ % 16 != 0)) {
    return false;
  }
  const std::int64_t deadline = monotonic_ns() + kPollNs;
  do {
    if (wait(stop, WNOHANG) != 0) {
      polls_missed_ = 0;
      return true;
    }
    ::sched_yield();  // the stopped thread itself may be waiting for this processor
  } while (monotonic_ns() < deadline);
  ++polls_missed_;
  return false;
}

StopWaiter::Stop StopWaiter::next() {
  Stop stop;
  // Checked here as well: with stops always pending the wait is never interrupted.
  if (tick_due != 0) {
    tick_due = 0;
    return stop;
  }
  if (poll_briefly(stop)) return stop;
  if (wait(stop, 0) < 0 && errno == EINTR) {
    stop.thread = 0;
    tick_due = 0;
  }
  return stop;
}

}  // namespace assay::collect
