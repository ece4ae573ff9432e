// Which running runs nobody is recording any more.
#include "base/process_stat.h"
#include "store/run_reader.h"

namespace assay::store {

bool is_alive(std::int64_t pid, std::int64_t start_ticks) {
  if (pid <= 0) return false;
  const auto stat = base::process_stat(static_cast<pid_t>(pid));
  return stat && !stat->has_ended() && stat->start_ticks == start_ticks;
}

base::Result<std::vector<RunRecord>> stale_running_runs(Store& store) {
  ASSAY_TRY(std::vector<RunRecord> runs, list_runs(store, {.status = RunStatus::kRunning}));
  std::erase_if(runs, [](const RunRecord& run) {
    return is_alive(run.collector_pid, run.collector_start_ticks);
  });
  return runs;
}

}  // namespace assay::store
