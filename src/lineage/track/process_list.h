// ProcessList: the processes of a run, from the events that mention them. A pid that reappears
// after its process has exited is another process.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "observe/collect/event/event.h"
#include "store/run.h"

namespace assay::lineage {

class ProcessList {
 public:
  // Times are relative to `started_ns`, the monotonic clock at the run's start.
  explicit ProcessList(std::int64_t started_ns) : started_ns_(started_ns) {}

  void on_event(const collect::Event& event);
  // In the order in which they were first seen.
  void for_each(const std::function<void(store::ProcessRecord)>& visit) const;
  [[nodiscard]] std::size_t size() const { return processes_.size(); }
  // The program that the process runs, or inherited from the one that forked it; empty: not known.
  [[nodiscard]] std::string_view program_of(pid_t pid) const;

 private:
  static constexpr std::int32_t kUnknown = -1;  // no wait status is negative
  struct Process {
    std::int64_t started_ns = 0;
    std::int64_t ended_ns = -1;
    std::string arguments;  // separated by NUL
    std::uint32_t program = 0;
    std::int32_t pid = 0;
    std::int32_t parent = 0;
    std::int32_t wait_status = kUnknown;
  };

  std::uint32_t program(std::string_view path);

  std::int64_t started_ns_;
  std::vector<Process> processes_;
  std::unordered_map<pid_t, std::uint32_t> latest_;  // by pid, including exited ones
  std::vector<std::string> programs_{std::string()};
  std::unordered_map<std::string, std::uint32_t> program_ids_;
};

}  // namespace assay::lineage
