#include "observe/collect/process/launch.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>
#include <vector>

#include "base/process/environment.h"
#include "base/process/exit_status.h"

namespace assay::collect {
namespace {

// Where starting the command failed in the child; sent with errno.
enum class StartPhase : int { kDirectory, kPrepare, kExec };
struct Report {
  StartPhase phase;
  int error;
};

// Limits that could disturb the collector. RLIMIT_STACK is not raised, because it is the default
// stack size of threads.
constexpr std::array kRaised = {RLIMIT_FSIZE, RLIMIT_NOFILE, RLIMIT_AS, RLIMIT_DATA, RLIMIT_CPU};

struct Signals {
  sigset_t mask{};
  std::array<bool, NSIG> ignored{};
  std::array<rlimit, kRaised.size()> limits{};
  bool known = false;
  bool raised = false;
};

Signals& saved() {
  static Signals signals;
  return signals;
}

void restore_limits() {
  const Signals& signals = saved();
  if (!signals.raised) return;
  for (std::size_t i = 0; i < kRaised.size(); ++i) ::setrlimit(kRaised[i], &signals.limits[i]);
}

void restore_signals() {
  const Signals& signals = saved();
  struct sigaction action {};
  for (int number = 1; number < NSIG; ++number) {
    action.sa_handler = signals.ignored[static_cast<std::size_t>(number)] ? SIG_IGN : SIG_DFL;
    ::sigaction(number, &action, nullptr);
  }
  ::sigprocmask(SIG_SETMASK, &signals.mask, nullptr);
}

[[noreturn]] void give_up(int pipe, StartPhase phase) {
  const Report report{phase, errno};
  [[maybe_unused]] const auto written = ::write(pipe, &report, sizeof report);
  ::_exit(base::kExitNotFound);
}

base::Error why_not(const Launch& launch, const Report& report) {
  switch (report.phase) {
    case StartPhase::kDirectory:
      return base::system_error(launch.directory, "cannot enter the directory", report.error);
    case StartPhase::kPrepare:
      return base::system_error("tracer", "the kernel refused to trace the command", report.error,
                                "`assay tracers` shows what works here");
    case StartPhase::kExec:
      break;
  }
  const std::string program = launch.command.front().empty() ? "''" : launch.command.front();
  if (report.error == ENOENT) {
    const bool is_path = program.find('/') != std::string::npos;
    return base::usage_error(program, is_path ? "no such program" : "command not found",
                             is_path ? "" : "it is in no directory of PATH");
  }
  base::Error error = base::system_error(
      program, "cannot run it", report.error,
      report.error == EACCES ? "make it executable (chmod +x), or name its interpreter" : "");
  error.code = base::ExitCode::kNo;  // a problem of the command, not of the machine
  return error;
}

}  // namespace

void save_signals() {
  Signals& signals = saved();
  if (std::exchange(signals.known, true)) return;
  ::sigprocmask(SIG_SETMASK, nullptr, &signals.mask);
  for (int number = 1; number < NSIG; ++number) {
    struct sigaction action {};
    signals.ignored[static_cast<std::size_t>(number)] =
        ::sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
  }
}

void raise_limits() {
  save_signals();
  Signals& signals = saved();
  if (std::exchange(signals.raised, true)) return;
  for (std::size_t i = 0; i < kRaised.size(); ++i) {
    rlimit& limit = signals.limits[i];
    if (::getrlimit(kRaised[i], &limit) != 0) continue;
    // RLIM_INFINITY exceeds the kernel's maximum for open files.
    const rlim_t most =
        kRaised[i] == RLIMIT_NOFILE ? std::max<rlim_t>(limit.rlim_max, 4096) : RLIM_INFINITY;
    const rlimit freed{most, most};
    const rlimit soft{limit.rlim_max, limit.rlim_max};
    if (::setrlimit(kRaised[i], &freed) != 0) ::setrlimit(kRaised[i], &soft);
  }
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGXFSZ, &ignore, nullptr);  // write() fails instead
}

base::Result<Launched> launch(const Launch& launch, const std::function<bool()>& in_child) {
  save_signals();
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return base::fail(base::system_error("pipe", "cannot start the command", errno));
  }
  base::UniqueFd reading(ends[0]);
  const base::UniqueFd writing(ends[1]);
  const std::vector<char*> arguments = base::null_terminated(launch.command);
  const std::vector<char*> environment = launch.environment.pointers();

  const pid_t pid = ::fork();
  if (pid < 0) return base::fail(base::system_error("fork", "cannot start the command", errno));
  if (pid == 0) {
    if (!launch.directory.empty() && ::chdir(launch.directory.c_str()) != 0) {
      give_up(writing.get(), StartPhase::kDirectory);
    }
    if (!in_child()) give_up(writing.get(), StartPhase::kPrepare);
    restore_limits();
    restore_signals();
    ::execvpe(arguments.front(), arguments.data(), environment.data());
    give_up(writing.get(), StartPhase::kExec);
  }
  return Launched{pid, std::move(reading)};
}

std::optional<base::Error> exec_failure(const Launch& launch, int exec_result) {
  Report report{};
  ssize_t got = 0;
  do {
    got = ::read(exec_result, &report, sizeof report);
  } while (got < 0 && errno == EINTR);
  if (got != sizeof report) return std::nullopt;
  return why_not(launch, report);
}

base::Error replace_with_command(const std::vector<std::string>& command) {
  const std::vector<char*> list = base::null_terminated(command);
  ::prctl(PR_SET_CHILD_SUBREAPER, 0);
  restore_limits();
  restore_signals();
  ::execvp(list.front(), list.data());
  return why_not({.command = command}, {StartPhase::kExec, errno});
}

base::Result<bool> ExecWatch::began() {
  // Polled now, not taken from the loop's poll: a child reports a failed exec before it exits, and
  // its exit may have been noticed since.
  pollfd result{descriptor(), POLLIN, 0};
  if (decided_ || ::poll(&result, 1, 0) <= 0) return false;
  decided_ = true;
  auto error = exec_failure(launch_, child_.exec_result.get());
  if (!error) return true;
  ::waitpid(child_.pid, nullptr, 0);
  return base::fail(*std::move(error));
}

base::Error gate_failure(const Launch& launch, const Launched& child) {
  ::waitpid(child.pid, nullptr, 0);
  const auto error = exec_failure(launch, child.exec_result.get());
  return error ? *error
               : base::unfit_error("tracer", "the child did not send its seccomp listener");
}

}  // namespace assay::collect
