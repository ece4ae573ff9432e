// CPU time and memory of a running run, from outside: the collector's descendants in /proc. The
// collector is their subreaper, so processes that daemonize are included. Used by `assay top`.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "base/process_stat.h"

namespace assay::collect {

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

  // Of the descendants of this collector, without the collector itself.
  [[nodiscard]] ProcessUsage usage_below(pid_t collector) const;

 private:
  std::map<pid_t, base::ProcessStat> processes_;
  std::multimap<pid_t, pid_t> children_;
};

}  // namespace assay::collect
