#include "observe/collect/ptrace/ptrace.h"

#include <fcntl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <optional>
#include <utility>

#include "base/unique_fd.h"
#include "observe/collect/event/log.h"
#include "observe/collect/gate/gate.h"
#include "observe/collect/process/launch.h"
#include "observe/collect/ptrace/filter.h"
#include "observe/collect/ptrace/loop.h"
#include "observe/collect/ptrace/tracee.h"

namespace assay::collect {
namespace {

class PtraceCollector : public Collector {
 public:
  explicit PtraceCollector(std::filesystem::path log) : path_(std::move(log)) {}

  base::Result<void> prepare() override {
    ASSAY_TRY(Log log, Log::create(path_));
    log_.emplace(std::move(log));
    return {};
  }

  base::Result<Outcome> run(const Launch& command, const Control& control, Sink& sink) override {
    if (!log_) ASSAY_TRY_VOID(prepare());
    Log& log = *log_;
    log.keep_words(command.keep_words);
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
      return base::fail(base::system_error("pipe", "cannot start the command", errno));
    }
    base::UniqueFd go_read(ends[0]);
    base::UniqueFd go_write(ends[1]);
    const std::vector<sock_filter> filter = trace_filter();
    // The child waits until it is traced: under the filter nobody can do without a tracer.
    const auto in_child = [&] {
      ::close(go_write.get());
      char word = 0;
      if (::read(go_read.get(), &word, 1) != 1) {
        errno = EPERM;
        return false;
      }
      return install_filter(filter, false) >= 0;
    };
    ASSAY_TRY(const Launched child, launch(command, in_child));
    if (::ptrace(PTRACE_SEIZE, child.pid, nullptr, tracee::options()) != 0) {
      const int error = errno;
      go_write.reset();
      ::waitpid(child.pid, nullptr, 0);
      return base::fail(base::system_error("ptrace", "the kernel refused to trace the command",
                                           error, "`assay tracers` tells what works here"));
    }
    const char word = 1;
    [[maybe_unused]] const auto written = ::write(go_write.get(), &word, 1);

    TraceLoop loop(child.pid, command.inherited, log, control, sink);
    Outcome outcome = loop.run();
    if (!loop.started()) {
      if (auto error = exec_failure(command, child.exec_result.get())) {
        return base::fail(std::move(*error));
      }
    }
    return outcome;
  }

 private:
  std::filesystem::path path_;
  std::optional<Log> log_;
};

}  // namespace

std::unique_ptr<Collector> make_ptrace_collector(const std::filesystem::path& log) {
  return std::make_unique<PtraceCollector>(log);
}

}  // namespace assay::collect
