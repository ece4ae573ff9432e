#include "base/process/interrupts.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace assay::base {

sigset_t interrupting_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, number);
  return set;
}

Result<Interrupts> Interrupts::watch() {
  const sigset_t signals = interrupting_signals();
  UniqueFd fd(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd.valid()) return fail(system_error("signals", "cannot be watched", errno));
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return Interrupts(std::move(fd));
}

Interrupts::~Interrupts() {
  if (!fd_.valid()) return;
  // Pending signals must not end this process when they are unblocked.
  consume();
  const sigset_t signals = interrupting_signals();
  ::pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
}

bool Interrupts::happened() const {
  pollfd fd = {fd_.get(), POLLIN, 0};
  return happened_ || ::poll(&fd, 1, 0) == 1;
}

std::optional<Interrupt> Interrupts::consume() {
  std::optional<Interrupt> last;
  signalfd_siginfo signal;
  while (::read(fd_.get(), &signal, sizeof signal) == sizeof signal) {
    last = {static_cast<int>(signal.ssi_signo), signal.ssi_code == SI_KERNEL};
  }
  happened_ = happened_ || last;
  return last;
}

}  // namespace assay::base
