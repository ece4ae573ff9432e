// The ends of the command's processes. Reaper waits for the command itself, which is the
// collector's child; ExitWatcher finds out when other processes exited (by pidfd) and, since
// Linux 6.15, with which status.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "base/unique_fd.h"
#include "observe/collect/event/event.h"
#include "observe/collect/event/log.h"
#include "observe/collect/process/collector.h"

namespace assay::collect {

// A sink that forwards to `sink` and watches every process that occurs in an event. Exits are
// appended to the log.
class ExitWatcher : public EventSink {
 public:
  // The exit of the command itself is reported by Reaper.
  ExitWatcher(pid_t command, EventSink& sink);

  void on_event(const Event& event) override;
  void before_change(std::string_view path, const wire::Stamp& stamp, Change change) override {
    sink_.before_change(path, stamp, change);
  }
  void on_tick() override { sink_.on_tick(); }

  // When the loop is idle: reports processes that exited. Most exits have been reported by then, by
  // the parent that waited, and cost nothing here; the rest are watched from now on.
  void idle(EventLog& log);
  // At the end of the run: reports the remaining exits.
  void finish(EventLog& log);

 private:
  struct Watched {
    base::UniqueFd pidfd;
    std::int64_t ended_ns = 0;  // 0: not yet
  };
  void watch(pid_t process);
  void take(EventLog& log, int wait_ms = 0);
  static void append(pid_t process, std::optional<int> status, std::int64_t time_ns, EventLog& log);
  bool report(pid_t process, Watched& watched, bool last, EventLog& log);

  pid_t command_;
  pid_t us_;
  pid_t keeper_;
  EventSink& sink_;
  base::UniqueFd epoll_;
  std::unordered_set<pid_t> fresh_;  // in an event, and not yet watched
  std::unordered_map<pid_t, Watched> watched_;
};

// Waits for the command through a descriptor that fits into a poll loop. Other children of the
// collector (git) are left to their callers.
class Reaper {
 public:
  // From here on SIGCHLD is blocked and read from the descriptor.
  Reaper();

  [[nodiscard]] int descriptor() const { return signals_.get(); }
  // True, once, when the command has ended; its exit is in the log then.
  bool reap(pid_t command, EventLog& log);
  [[nodiscard]] bool ended() const { return ended_; }
  [[nodiscard]] int status() const { return status_; }
  [[nodiscard]] CollectorResult outcome() const;

 private:
  base::UniqueFd signals_;
  bool ended_ = false;
  int status_ = 0;
  struct rusage usage_ {};
};

}  // namespace assay::collect
