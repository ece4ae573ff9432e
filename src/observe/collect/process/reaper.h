// Reaper: waits for the command through a descriptor that fits into a poll loop. Other children of
// the collector (it asks git) are left to whoever started them.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include "base/unique_fd.h"
#include "observe/collect/event/log.h"
#include "observe/collect/process/collector.h"

namespace assay::collect {

class Reaper {
 public:
  // From here on SIGCHLD is blocked and read from the descriptor.
  Reaper();

  [[nodiscard]] int descriptor() const { return signals_.get(); }
  // True, once, when the command has ended; its exit is in the log then.
  bool reap(pid_t command, Log& log);
  [[nodiscard]] bool ended() const { return ended_; }
  [[nodiscard]] int status() const { return status_; }
  [[nodiscard]] Outcome outcome() const;

 private:
  base::UniqueFd signals_;
  bool ended_ = false;
  int status_ = 0;
  struct rusage usage_ {};
};

}  // namespace assay::collect
