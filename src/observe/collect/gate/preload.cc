#include "observe/collect/gate/preload.h"

#include <fmt/format.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/file.h"
#include "base/process/environment.h"
#include "base/process/exit_status.h"
#include "observe/collect/event/log.h"
#include "observe/collect/gate/filter.h"
#include "observe/collect/gate/gate.h"
#include "observe/collect/process/exits.h"
#include "observe/collect/process/installed_library.h"
#include "observe/collect/process/launch.h"

namespace assay::collect {
namespace {

// How long shim records may wait until they are read. Hashing of files that were read starts then,
// so it is short at first and grows while the command is idle.
constexpr int kShortestWait_ms = 5;
constexpr int kLongestWait_ms = 100;

constexpr std::string_view kShimLibrary = "libassay-shim.so";

// Empty if it is not installed.
std::filesystem::path shim_library() {
  return installed_library(kShimLibrary);
}

// The command's environment with the shim.
base::Environment with_shim(base::Environment environment, const std::string& shim,
                            const std::string& log) {
  // Last, so that the shim sees the calls of other libraries that change what a program opens.
  environment.add_to_list("LD_PRELOAD", shim, base::Environment::Place::kLast);
  // A program built with AddressSanitizer refuses to start behind a preloaded library unless it is
  // told otherwise; the shim does not replace memory functions.
  environment.add_to_list("ASAN_OPTIONS", "verify_asan_link_order=0",
                          base::Environment::Place::kFirst);
  environment.set(wire::kLogVariable, log);
  return environment;
}

class PreloadCollector : public LoggingCollector {
 public:
  explicit PreloadCollector(std::filesystem::path log) : LoggingCollector(std::move(log)) {}

  base::Result<CollectorResult> run(const Launch& launch, const CollectorCallbacks& control,
                                    EventSink& sink) override {
    ASSAY_TRY(EventLog* const prepared, log_for(launch));
    EventLog& log = *prepared;
    Gate gate(GateMode::kEverything, log_path());
    log.header().stopped = stopped_numbers(GateMode::kEverything);
    Launch shimmed = launch;
    if (const auto shim = shim_library(); !shim.empty()) {
      shimmed.environment = with_shim(std::move(shimmed.environment), shim, log_path());
    }
    Reaper reaper;
    ASSAY_TRY(Launched child, collect::launch(shimmed, [&] { return gate.install(); }));
    if (!gate.receive()) return base::fail(gate_failure(launch, child));
    append_inherited(launch.inherited, child.pid, log);
    log.drain(sink);  // before the command starts: it may write to these files
    ASSAY_TRY_VOID(loop(launch, control, sink, log, gate, reaper, child));
    CollectorResult outcome = reaper.outcome();
    outcome.dropped = log.header().dropped;
    if (log.torn() > 0) {
      outcome.missed.push_back(
          {"torn",
           fmt::format("{} records were being written when their process was killed", log.torn())});
    }
    return outcome;
  }

 private:
  base::Result<void> loop(const Launch& launch, const CollectorCallbacks& control, EventSink& outer,
                          EventLog& log, Gate& gate, Reaper& reaper, Launched& child) {
    ExitWatcher exits(child.pid, outer);
    EventSink& sink = exits;
    ExecWatch watch(launch, child);
    bool gate_open = true;
    bool recording = true;
    bool watched = true;
    int wait_ms = kShortestWait_ms;
    while (gate_open || !reaper.ended()) {
      std::array<pollfd, 4> waiting{{{gate_open ? gate.listener() : -1, POLLIN, 0},
                                     {reaper.descriptor(), POLLIN, 0},
                                     {watch.descriptor(), POLLIN, 0},
                                     {watched ? control.keeper : -1, POLLIN, 0}}};
      const int ready = ::poll(waiting.data(), waiting.size(), wait_ms);
      if (waiting[0].revents != 0) {
        gate_open = recording ? gate.serve(log, sink) : allow_all_calls(gate.listener(), 0);
      }
      ASSAY_TRY(const bool began, watch.began());
      if (began) control.started(child.pid, gate.listener());
      if (recording && ready == 0) exits.idle(log);
      if (waiting[1].revents != 0 && reaper.reap(child.pid, log)) control.ended(reaper.status());
      if (waiting[3].revents != 0) {
        watched = false;
        recording = control.detached();
        if (!recording) {
          log.drain(sink);
          control.abandoned();
        }
      }
      const bool busy = (recording && log.drain(sink) > 0) || ready > 0;
      if (recording) sink.on_tick();
      wait_ms = busy ? kShortestWait_ms : std::min(2 * wait_ms, kLongestWait_ms);
    }
    if (!recording) return {};
    log.drain(sink);
    exits.finish(log);
    log.finish(outer);
    return {};
  }
};

}  // namespace

std::unique_ptr<Collector> make_preload_collector(const std::filesystem::path& log) {
  return std::make_unique<PreloadCollector>(log);
}

namespace {

// errno of installing a filter that allows everything, or 0. In a child, because a filter cannot be
// taken off again.
int try_filter() {
  const std::vector<sock_filter> allow_all = {
      {static_cast<__u16>(BPF_RET | BPF_K), 0, 0, SECCOMP_RET_ALLOW}};
  const pid_t child = ::fork();
  if (child < 0) return errno;
  if (child == 0) ::_exit(install_filter(allow_all, true) >= 0 ? 0 : errno);
  int status = 0;
  ::waitpid(child, &status, 0);
  return base::signal_of(status) ? EINTR : base::shell_exit_code(status);
}

}  // namespace

bool under_another_gate() {
  return try_filter() == EBUSY;
}

base::Result<void> gate_available() {
  const int error = try_filter();
  switch (error) {
    case 0:
      return {};
    case EBUSY:
      return base::fail(
          base::unfit_error("seccomp", "this process is already under a seccomp listener",
                            "inside another `assay run`, or in a sandbox that has one"));
    case EINVAL:
      return base::fail(base::unfit_error("seccomp", "the kernel has no user notification",
                                          "Linux 5.5 or newer is required"));
    default:
      return base::fail(base::system_error("seccomp", "the filter was refused", error,
                                           "a container's seccomp profile may forbid it"));
  }
}

Preflight preload_preflight() {
  Preflight out{.tracer = Tracer::kPreload};
  const std::filesystem::path shim = shim_library();
  if (const auto gate = gate_available(); !gate) {
    out.reason = gate.error().line();
    return out;
  }
  out.available = true;
  out.reason = "seccomp user notification works";
  if (shim.empty()) {
    out.notes.push_back(why_not_installed(kShimLibrary) +
                        ": complete, but every open is stopped (5 to 9 µs)");
  } else {
    out.notes.push_back("shim: " + shim.string());
  }
  if (::geteuid() != 0) {
    out.notes.emplace_back(
        "sets no_new_privs: sudo and other set-user-id programs run without their privileges");
  }
  out.notes.emplace_back(
      "cannot see: io_uring whose operations the kernel takes without a call (SQPOLL); the run is "
      "then marked incomplete");
  return out;
}

}  // namespace assay::collect
