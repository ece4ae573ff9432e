// Collector: runs a command and reports to an EventSink everything it does to files. The interface
// of three kinds: gate/preload.cc, ebpf/ebpf.cc and ptrace/ptrace.cc; tracers.h chooses.
#pragma once

#include <sys/resource.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/process/environment.h"
#include "base/result.h"
#include "observe/collect/event/event.h"
#include "observe/collect/event/log.h"
#include "observe/collect/process/inherited.h"

namespace assay::collect {

enum class Tracer { kPreload, kEbpf, kPtrace };
// The command to run: its arguments, environment, directory, and inherited files.
struct Launch {
  std::vector<std::string> command;
  base::Environment environment;
  std::filesystem::path directory;
  std::vector<Inherited> inherited = {};
  // Removes secrets from the arguments of started programs before they are logged.
  RedactArguments redact = {};
};

// Something that could not be observed. A run without any is "complete".
struct ObservationGap {
  std::string what;  // "io_uring", "setuid", "dropped", "unseen", …: for programs
  std::string text;  // one sentence for people, with the process or file
};

struct CollectorResult {
  int wait_status = 0;        // of the command itself
  struct rusage usage {};     // of the whole process tree, as far as it was waited for
  std::uint64_t dropped = 0;  // events known to have happened and not recorded
  std::vector<ObservationGap> missed;
};

// Callbacks from the collector's loop.
struct CollectorCallbacks {
  // Called once when the command runs, with its pid; and with the seccomp listener's descriptor if
  // there is one (else -1), so that another process can keep it open.
  std::function<void(pid_t pid, int listener)> started = [](pid_t, int) {};
  // Called once when the command itself has ended; its children may still run.
  std::function<void(int wait_status)> ended = [](int) {};
  // When this descriptor becomes readable (or its other end closes), recording ends: the collector
  // drains the log, calls `abandoned` once, and from then on only keeps the command running,
  // without reporting to the sink. -1: never.
  int keeper = -1;
  std::function<void()> abandoned = [] {};
  // Called before that: whether the keeper has detached. Recording continues without it then.
  std::function<bool()> detached = [] { return false; };
};

class Collector {
 public:
  virtual ~Collector() = default;
  // Loads what the tracer needs into the kernel; fails where the tracer cannot work.
  virtual base::Result<void> load() { return {}; }
  // Creates the log and everything else needed before the command can be started. An error means
  // that nothing can be recorded.
  virtual base::Result<void> prepare() = 0;
  // Starts the command (after prepare(), unless that was done) and returns when it and all its
  // descendants have ended. An error means that the command was not started: see exec_failure().
  // (The shell's exit codes 127 and 126 are up to the caller.)
  virtual base::Result<CollectorResult> run(const Launch& launch, const CollectorCallbacks& control,
                                            EventSink& sink) = 0;
};

// A collector with an event log.
class LoggingCollector : public Collector {
 public:
  base::Result<void> prepare() override {
    ASSAY_TRY(EventLog log, EventLog::create(path_));
    log_.emplace(std::move(log));
    return {};
  }

 protected:
  explicit LoggingCollector(std::filesystem::path log) : path_(std::move(log)) {}
  // For running the command: prepares the log unless that was done.
  base::Result<EventLog*> log_for(const Launch& launch) {
    if (!log_) ASSAY_TRY_VOID(prepare());
    log_->redact_with(launch.redact);
    return &*log_;
  }
  [[nodiscard]] const std::filesystem::path& log_path() const { return path_; }

 private:
  std::filesystem::path path_;
  std::optional<EventLog> log_;
};

// What `assay tracers` shows: whether a tracer works here, and if not, why and what to do.
struct Preflight {
  Tracer tracer;
  bool available = false;
  std::string reason;              // one line: why it works, or why not
  std::vector<std::string> notes;  // kernel version, privileges, what it cannot observe
};

}  // namespace assay::collect
