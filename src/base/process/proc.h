// What the kernel reports about processes in /proc.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"
#include "base/units.h"

namespace assay::base {

// A small file of /proc: as much as fits into the buffer, in a single read, so that it is
// consistent. Empty if there is no such file.
std::string_view read_proc_file(const char* path, std::span<char> buffer);

// From /proc/PID/stat.
struct ProcessStat {
  char state = '?';  // as ps(1) shows it
  pid_t parent = 0;
  // Clock ticks from boot to the process's start; together with the pid, an identity that is never
  // reused.
  std::int64_t start_ticks = 0;
  // CPU time in clock ticks: its own, and that of children it has waited for.
  std::int64_t cpu_ticks = 0;
  std::int64_t children_cpu_ticks = 0;
  std::int64_t resident_pages = 0;

  // Whether it has exited, even if its parent has not waited for it yet.
  [[nodiscard]] bool has_ended() const { return state == 'Z' || state == 'X'; }
};

// Nothing if there is no such process.
std::optional<ProcessStat> process_stat(pid_t process);
// Parses the file's text; the program's name in it may contain anything.
std::optional<ProcessStat> parse_process_stat(std::string_view text);

// No command line is longer than the kernel's limit for arguments, of 6 MiB.
inline constexpr Bytes kLongestCommandLine{8 << 20};

// The arguments that a process was started with. None if it has ended, is not to be seen, is one of
// the kernel's, or has more than `limit`.
std::vector<std::string> process_arguments(pid_t process, Bytes limit = kLongestCommandLine);
// Those of this process; none if /proc is not mounted.
std::vector<std::string> own_arguments();

struct MemorySize {
  std::int64_t resident_bytes = 0;  // 0: the kernel does not report it
  std::int64_t peak_bytes = 0;      // the most that was ever resident
};

// The memory of this process. The file stays open, so that frequent queries are cheap.
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
