// Which running jobs nobody is recording any more.
#include "base/process_stat.h"
#include "store/job_reader.h"

namespace assay::store {

bool is_alive(std::int64_t pid, std::int64_t start_ticks) {
  if (pid <= 0) return false;
  const auto stat = base::process_stat(static_cast<pid_t>(pid));
  return stat && !stat->has_ended() && stat->start_ticks == start_ticks;
}

base::Result<std::vector<Job>> stale_running_jobs(Store& store) {
  ASSAY_TRY(std::vector<Job> jobs, list_jobs(store, {.status = JobStatus::kRunning}));
  std::erase_if(
      jobs, [](const Job& job) { return is_alive(job.collector_pid, job.collector_start_ticks); });
  return jobs;
}

}  // namespace assay::store
