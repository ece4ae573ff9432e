#include "observe/collect/process/proc.h"

#include <dirent.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <memory>
#include <string>
#include <string_view>

#include "base/number.h"
#include "base/process/proc.h"

namespace assay::collect {
pid_t process_of(pid_t thread) {
  // Most threads are the first of their group, which is cheap to check.
  if (::syscall(SYS_tgkill, thread, thread, 0) == 0) return thread;
  std::array<char, 4096> buffer;
  const std::string path = "/proc/" + std::to_string(thread) + "/status";
  const std::string_view text = base::read_proc_file(path.c_str(), buffer);
  constexpr std::string_view kKey = "\nTgid:\t";
  const std::size_t at = text.find(kKey);
  if (at == std::string_view::npos) return thread;
  pid_t process = thread;
  std::from_chars(text.data() + at + kKey.size(), text.data() + text.size(), process);
  return process;
}

pid_t parent_of(pid_t process) {
  const auto stat = base::process_stat(process);
  return stat ? stat->parent : 0;
}

std::vector<int> numbers_in(const std::string& folder) {
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir(folder.c_str()), ::closedir);
  std::vector<int> out;
  while (const dirent* entry = dir ? ::readdir(dir.get()) : nullptr) {
    if (const auto number = base::parse_number<int>(entry->d_name)) out.push_back(*number);
  }
  return out;
}

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
  // The CPU time of a process that exited and was waited for is in its parent's counters, up to the
  // collector's.
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
