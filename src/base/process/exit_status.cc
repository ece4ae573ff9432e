#include "base/process/exit_status.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

namespace assay::base {

int shell_exit_code(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

std::optional<int> signal_of(int wait_status) {
  return WIFSIGNALED(wait_status) ? std::optional<int>(WTERMSIG(wait_status)) : std::nullopt;
}

std::string exit_text(int wait_status) {
  if (const auto signal = signal_of(wait_status)) {
    return fmt::format("was killed by signal {}", *signal);
  }
  return fmt::format("exited with {}", WEXITSTATUS(wait_status));
}

int shell_exit_code_of_failed_start(int errno_value) {
  return errno_value == EACCES ? kExitNotRunnable : kExitNotFound;
}

void exit_with_status(int wait_status) {
  if (const auto signal = signal_of(wait_status)) {
    const rlimit no_core{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);  // the other process has dumped its own
    struct sigaction action {};
    action.sa_handler = SIG_DFL;
    ::sigaction(*signal, &action, nullptr);
    sigset_t set{};
    ::sigemptyset(&set);
    ::sigaddset(&set, *signal);
    ::sigprocmask(SIG_UNBLOCK, &set, nullptr);
    ::raise(*signal);
  }
  ::_exit(shell_exit_code(wait_status));
}

}  // namespace assay::base
