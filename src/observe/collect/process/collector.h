// Collector: runs a command and tells a Sink everything it does to files. Three kinds, one
// interface: gate/preload.cc, ebpf/ebpf.cc and ptrace/ptrace.cc each make one; tracers.h chooses.
#pragma once

#include <sys/resource.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/process/environment.h"
#include "base/result.h"
#include "observe/collect/event/event.h"
#include "observe/collect/event/log.h"
#include "observe/collect/process/inherited.h"

namespace assay::collect {

enum class Tracer { kPreload, kEbpf, kPtrace };
// The command: its arguments, environment and directory, and the files that it gets open.
struct Launch {
  std::vector<std::string> words;
  base::Environment environment;
  std::filesystem::path directory;
  std::vector<Inherited> inherited = {};
  // What of the words of started programs may be written down. The log is a file.
  KeepWords keep_words = {};
};

// Something that could not be seen. The verdict "complete" is the absence of these.
struct Missed {
  std::string what;  // "io_uring", "setuid", "dropped", "unseen", …: a word for programs
  std::string text;  // one sentence for people, with the process or file
};

struct Outcome {
  int wait_status = 0;        // of the command itself
  struct rusage usage {};     // of the whole process tree, as far as it was waited for
  std::uint64_t dropped = 0;  // events known to have happened and not recorded
  std::vector<Missed> missed;
};

// How the run is joined to the world outside the loop.
struct Control {
  // Called once when the command runs, with its pid; and with the seccomp listener's descriptor if
  // there is one (else -1), so that another process can keep it open.
  std::function<void(pid_t pid, int listener)> started = [](pid_t, int) {};
  // Called once when the command itself has ended, though its children may go on.
  std::function<void(int wait_status)> ended = [](int) {};
  // When this descriptor becomes readable (or its other end closes), recording ends: the collector
  // drains the log, calls `abandoned` once, and from then on only keeps the command going, without
  // telling the sink anything. -1: never.
  int keeper = -1;
  std::function<void()> abandoned = [] {};
  // Asked before that: whether the keeper has left on purpose. Then recording goes on without it.
  std::function<bool()> detached = [] { return false; };
};

class Collector {
 public:
  virtual ~Collector() = default;
  // Makes the log and whatever else is needed before the command can be started. An error means
  // that nothing can be recorded.
  virtual base::Result<void> prepare() = 0;
  // Starts the command (after prepare(), unless that was done) and returns when it and all its
  // descendants have ended. An error means that the command was not started: see exec_failure().
  // (The shell's 127 and 126 are the caller's to give.)
  virtual base::Result<Outcome> run(const Launch& launch, const Control& control, Sink& sink) = 0;
};

// What `assay tracers` tells of each: whether it works here, and if not, why and what to do.
struct Preflight {
  Tracer tracer;
  bool available = false;
  std::string reason;              // one line: why it works, or why not
  std::vector<std::string> notes;  // what to know: kernel version, privileges, what it cannot see
};

}  // namespace assay::collect
