#include "observe/collect/ptrace/ptrace.h"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "base/unique_fd.h"
#include "observe/collect/event/log.h"
#include "observe/collect/gate/gate.h"
#include "observe/collect/process/launch.h"
#include "observe/collect/ptrace/trace_filter.h"
#include "observe/collect/ptrace/trace_loop.h"
#include "observe/collect/ptrace/tracee.h"

namespace assay::collect {
namespace {

class PtraceCollector : public LoggingCollector {
 public:
  explicit PtraceCollector(std::filesystem::path log) : LoggingCollector(std::move(log)) {}

  base::Result<CollectorResult> run(const Launch& command, const CollectorCallbacks& control,
                                    EventSink& sink) override {
    ASSAY_TRY(EventLog* const prepared, log_for(command));
    EventLog& log = *prepared;
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
      return base::fail(base::system_error("pipe", "cannot start the command", errno));
    }
    base::UniqueFd start_read(ends[0]);
    base::UniqueFd start_write(ends[1]);
    const std::vector<sock_filter> filter = trace_filter();
    // The child waits until it is traced: under the filter it depends on its tracer.
    const auto in_child = [&] {
      ::close(start_write.get());
      char word = 0;
      if (::read(start_read.get(), &word, 1) != 1) {
        errno = EPERM;
        return false;
      }
      return install_filter(filter, false) >= 0;
    };
    ASSAY_TRY(const Launched child, launch(command, in_child));
    if (::ptrace(PTRACE_SEIZE, child.pid, nullptr, tracee::options()) != 0) {
      const int error = errno;
      start_write.reset();
      ::waitpid(child.pid, nullptr, 0);
      return base::fail(base::system_error("ptrace", "the kernel refused to trace the command",
                                           error, "`assay tracers` shows what works here"));
    }
    const char word = 1;
    [[maybe_unused]] const auto written = ::write(start_write.get(), &word, 1);

    TraceLoop loop(child.pid, command.inherited, log, control, sink);
    CollectorResult outcome = loop.run();
    if (!loop.started()) {
      if (auto error = exec_failure(command, child.exec_result.get())) {
        return base::fail(std::move(*error));
      }
    }
    return outcome;
  }
};

}  // namespace

std::unique_ptr<Collector> make_ptrace_collector(const std::filesystem::path& log) {
  return std::make_unique<PtraceCollector>(log);
}

namespace {

// Why a child cannot be traced; empty if it can.
std::string trial() {
  if (under_another_gate())
    return "another `assay run`, or a sandbox, already intercepts the calls";
  const std::uint32_t action = SECCOMP_RET_TRACE;
  if (::syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) != 0) {
    return "seccomp filters that stop for a tracer are not available: Linux 4.14 or newer is "
           "needed";
  }
  const pid_t child = ::fork();
  if (child < 0) return std::string("cannot start a process: ") + std::strerror(errno);
  if (child == 0) {
    for (;;) ::pause();
  }
  std::string reason;
  if (::ptrace(PTRACE_SEIZE, child, nullptr, nullptr) != 0) {
    reason = std::string("ptrace is not permitted here: ") + std::strerror(errno) +
             "; see /proc/sys/kernel/yama/ptrace_scope, or the container's seccomp profile";
  } else {
    __ptrace_syscall_info info{};
    ::ptrace(PTRACE_INTERRUPT, child, nullptr, nullptr);
    ::waitpid(child, nullptr, __WALL);
    if (::ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof info, &info) <= 0) {
      reason = "PTRACE_GET_SYSCALL_INFO is not available: Linux 5.3 or newer is needed";
    }
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, __WALL);
  return reason;
}

}  // namespace

Preflight ptrace_preflight() {
  Preflight result{.tracer = Tracer::kPtrace};
  utsname system{};
  ::uname(&system);
#ifndef __x86_64__
  result.reason = std::string("only x86-64 is supported, this is ") + system.machine;
  return result;
#else
  const std::string why_not = trial();
  result.available = why_not.empty();
  result.reason = result.available ? "a child process can be traced" : why_not;
  result.notes = {std::string("Linux ") + system.release,
                  "needs no privileges; every file operation stops the process",
                  "a debugger, or another tracer, cannot be used inside the command",
                  "if the collector is killed, the command is killed too"};
  return result;
#endif
}

}  // namespace assay::collect
