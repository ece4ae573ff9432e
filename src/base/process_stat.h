// The few facts of /proc/PID/stat that we need of other processes.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string_view>

namespace assay::base {

struct ProcessStat {
  char state = '?';  // as ps(1) shows it
  pid_t parent = 0;
  // Clock ticks from boot to the process's start: with the pid, a name for it that is never used
  // again.
  std::int64_t start_ticks = 0;
  // CPU time in clock ticks: its own, and of children that it has waited for.
  std::int64_t cpu_ticks = 0;
  std::int64_t children_cpu_ticks = 0;
  std::int64_t resident_pages = 0;

  // Over, and only not waited for yet.
  [[nodiscard]] bool has_ended() const { return state == 'Z' || state == 'X'; }
};

// Nothing when there is no such process.
std::optional<ProcessStat> process_stat(pid_t process);

// The file's text, whatever the program calls itself.
std::optional<ProcessStat> parse_process_stat(std::string_view text);

}  // namespace assay::base
