// Which running jobs nobody is recording any more.
#include <fmt/format.h>

#include <charconv>

#include "base/file.h"
#include "store/job_reader.h"

namespace assay::store {
namespace {

// Field 22 of /proc/PID/stat; nothing when there is no such process. The second field is the
// program's name in brackets and may hold anything, brackets and spaces included.
std::optional<std::int64_t> start_ticks_of(std::int64_t pid) {
  const auto stat = base::read_file(fmt::format("/proc/{}/stat", pid), base::Bytes(4096));
  if (!stat) return std::nullopt;
  std::string_view rest(*stat);
  const std::size_t name_end = rest.rfind(')');
  if (name_end == std::string_view::npos || name_end + 2 > rest.size()) return std::nullopt;
  rest.remove_prefix(name_end + 2);
  const char state = rest.empty() ? 'X' : rest.front();
  if (state == 'Z' || state == 'X') return std::nullopt;  // ended, and not yet waited for
  for (int field = 3; field < 22; ++field) {
    const std::size_t space = rest.find(' ');
    if (space == std::string_view::npos) return std::nullopt;
    rest.remove_prefix(space + 1);
  }
  std::int64_t ticks = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), ticks);
  return error == std::errc() ? std::optional(ticks) : std::nullopt;
}

}  // namespace

bool is_alive(std::int64_t pid, std::int64_t start_ticks) {
  return pid > 0 && start_ticks_of(pid) == start_ticks;
}

base::Result<std::vector<Job>> stale_running_jobs(Store& store) {
  ASSAY_TRY(std::vector<Job> jobs, list_jobs(store, {.status = JobStatus::kRunning}));
  std::erase_if(
      jobs, [](const Job& job) { return is_alive(job.collector_pid, job.collector_start_ticks); });
  return jobs;
}

}  // namespace assay::store
