// TraceLoop: waits for the stops of a traced command, records what happened at each, and resumes
// it. The command exists when the loop is created, and has ended with all its descendants when
// run() returns.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "observe/collect/call/stopped_call.h"
#include "observe/collect/event/log.h"
#include "observe/collect/process/collector.h"

namespace assay::collect {

class TraceLoop {
 public:
  // `root` is already traced, with tracee::options(), and has not executed its program yet.
  TraceLoop(pid_t root, const std::vector<Inherited>& inherited, EventLog& log,
            const CollectorCallbacks& control, EventSink& sink)
      : root_(root), inherited_(inherited), log_(log), control_(control), sink_(sink) {}

  CollectorResult run();
  // Whether the command ever became its program.
  [[nodiscard]] bool started() const { return started_; }

 private:
  struct Thread {
    pid_t process = 0;
    std::optional<CallEffect> pending;  // of its current call
  };
  struct Process {
    pid_t parent = 0;
  };

  // Threads, processes and events.
  void on_tick();
  void ended(pid_t thread, int status, const struct rusage& usage);
  Thread& known(pid_t thread);
  void add_process(pid_t process, pid_t parent);
  void record(pid_t thread, const Thread& state, const CallEffect& effect);
  void record(Event event);

  // Stops.
  void stopped(pid_t thread, int status);
  void at_call(pid_t thread, Thread& state);
  void at_result(pid_t thread, Thread& state);
  void at_exec(pid_t thread, Thread& state);
  void at_fork(pid_t thread, const Thread& state);
  void resume(pid_t thread, const Thread& state, int signal = 0);

  pid_t root_;
  const std::vector<Inherited>& inherited_;
  EventLog& log_;
  const CollectorCallbacks& control_;
  EventSink& sink_;
  std::unordered_map<pid_t, Thread> threads_;
  std::unordered_map<pid_t, Process> processes_;
  std::unordered_set<pid_t> early_;  // stopped before their parents' fork event
  CollectorResult outcome_;
  bool started_ = false;
  bool recording_ = true;
  bool watched_ = true;  // by the keeper
};

}  // namespace assay::collect
