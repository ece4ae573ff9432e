// Facts about other processes, from /proc. ProcessTable is how `assay top` sees a running run.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/process/proc.h"

namespace assay::collect {

// The thread group of a thread; the thread itself if it has exited.
pid_t process_of(pid_t thread);
// 0 if it has exited.
pid_t parent_of(pid_t process);
// The numeric names in a directory: processes in /proc, descriptors in /proc/PID/fd. None if it
// cannot be read.
std::vector<int> numbers_in(const std::string& folder);

// Of all processes of a run together.
struct ProcessUsage {
  std::size_t processes = 0;
  double cpu_seconds = 0;          // including processes that have exited
  std::uint64_t memory_bytes = 0;  // resident; pages that processes share are counted for each
};

// All processes at one moment: /proc is read once for any number of runs.
class ProcessTable {
 public:
  static ProcessTable read();

  // Of the descendants of this collector, without the collector itself. It is their subreaper, so
  // processes that daemonize are included.
  [[nodiscard]] ProcessUsage usage_below(pid_t collector) const;

 private:
  std::map<pid_t, base::ProcessStat> processes_;
  std::multimap<pid_t, pid_t> children_;
};

}  // namespace assay::collect
