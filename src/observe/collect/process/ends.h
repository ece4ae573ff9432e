// Ends: tells of the ends of processes that are not our children, as far as the kernel tells us:
// when (a pidfd), and since Linux 6.15 how.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "base/unique_fd.h"
#include "observe/collect/event/event.h"
#include "observe/collect/event/log.h"

namespace assay::collect {

// Watches every process that is told through it; `sink` is told all the same. What it learns is
// appended to the log.
class Ends : public Sink {
 public:
  // The command's own end is the reaper's to tell.
  Ends(pid_t command, Sink& sink);

  void happened(const Event& event) override;
  void about_to_change(std::string_view path, const wire::Stamp& stamp, Change change) override {
    sink_.about_to_change(path, stamp, change);
  }
  void meanwhile() override { sink_.meanwhile(); }

  // When nothing else is to do: looks who has ended. Most processes have by then been told of by
  // the parent that waited for them, and cost nothing here; the rest are watched from now on.
  void idle(Log& log);
  // The run is over: whatever has ended and is not told yet.
  void finish(Log& log);

 private:
  struct Watched {
    base::UniqueFd pidfd;
    std::int64_t ended_ns = 0;  // 0: not yet
  };
  void watch(pid_t process);
  void take(Log& log, int wait_ms = 0);
  static void append(pid_t process, std::optional<int> status, std::int64_t time_ns, Log& log);
  bool tell(pid_t process, Watched& watched, bool last, Log& log);

  pid_t command_;
  pid_t us_;
  pid_t keeper_;
  Sink& sink_;
  base::UniqueFd epoll_;
  std::unordered_set<pid_t> fresh_;  // told of, and not yet watched
  std::unordered_map<pid_t, Watched> watched_;
};

}  // namespace assay::collect
