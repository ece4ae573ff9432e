#include "observe/collect/process/process_usage.h"

#include <unistd.h>

#include "observe/collect/process/proc.h"

namespace assay::collect {

ProcessTable ProcessTable::read() {
  ProcessTable table;
  for (const pid_t process : numbers_in("/proc")) {
    const auto stat = base::process_stat(process);
    if (!stat) continue;
    table.processes_.emplace(process, *stat);
    table.children_.emplace(stat->parent, process);
  }
  return table;
}

ProcessUsage ProcessTable::usage_below(pid_t collector) const {
  ProcessUsage usage;
  std::int64_t ticks = 0;
  std::int64_t pages = 0;
  // A process that exited and was waited for has left its time with its parent, up to the
  // collector.
  if (const auto own = processes_.find(collector); own != processes_.end()) {
    ticks += own->second.children_cpu_ticks;
  }
  std::vector<pid_t> waiting = {collector};
  while (!waiting.empty()) {
    const auto [begin, end] = children_.equal_range(waiting.back());
    waiting.pop_back();
    for (auto child = begin; child != end; ++child) {
      const base::ProcessStat& stat = processes_.at(child->second);
      ticks += stat.cpu_ticks + stat.children_cpu_ticks;
      pages += stat.resident_pages;
      if (!stat.has_ended()) ++usage.processes;
      waiting.push_back(child->second);
    }
  }
  usage.cpu_seconds = static_cast<double>(ticks) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  usage.memory_bytes = static_cast<std::uint64_t>(pages * ::sysconf(_SC_PAGESIZE));
  return usage;
}

}  // namespace assay::collect
