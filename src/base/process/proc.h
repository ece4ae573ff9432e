// What the kernel reports about processes in /proc.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/unique_fd.h"

namespace assay::base {

// A small file of /proc: as much as fits into the buffer, in one read, so that it is of one moment.
// Empty when there is no such file.
std::string_view read_proc_file(const char* path, std::span<char> buffer);

// From /proc/PID/stat.
struct ProcessStat {
  char state = '?';  // as ps(1) shows it
  pid_t parent = 0;
  // Clock ticks from boot to the process's start: with the pid, a name for it that is never used
  // again.
  std::int64_t start_ticks = 0;

  // It has exited, though its parent may not have waited for it yet.
  [[nodiscard]] bool has_ended() const { return state == 'Z' || state == 'X'; }
};

// Nothing when there is no such process.
std::optional<ProcessStat> process_stat(pid_t process);
// The file's text; the program's name in it may contain anything.
std::optional<ProcessStat> parse_process_stat(std::string_view text);

struct MemorySize {
  std::int64_t resident_bytes = 0;  // 0: the kernel does not report it
  std::int64_t peak_bytes = 0;      // the most that was ever resident
};

// How much memory this process has. The file stays open, so that a query every second opens
// nothing.
class ProcessMemory {
 public:
  ProcessMemory();
  [[nodiscard]] MemorySize now() const;

 private:
  UniqueFd status_;
};

// The text of /proc/PID/status.
MemorySize parse_memory_size(std::string_view status);

}  // namespace assay::base
