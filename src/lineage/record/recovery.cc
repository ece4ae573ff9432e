#include "lineage/record/recovery.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/host_name.h"
#include "base/process/exit_status.h"
#include "lineage/record/context.h"
#include "lineage/record/job_part.h"
#include "lineage/record/merge_parts.h"
#include "lineage/record/metrics_file.h"
#include "lineage/record/part_folder.h"
#include "lineage/record/run_results.h"
#include "lineage/track/tracker.h"
#include "observe/collect/event/log.h"
#include "observe/collect/gpu_counters.h"
#include "store/run_reader.h"
#include "store/run_writer.h"

namespace assay::lineage {
namespace {

namespace fs = std::filesystem;

constexpr const char* kKilled =
    "the collector was killed, or could not store the run: what the command did after that was not "
    "recorded, and files are recorded as they were found later";

// Times in the log are from the monotonic clock, so the first event is taken as the start of the
// run.
class TimeRange : public collect::EventSink {
 public:
  void on_event(const collect::Event& event) override {
    if (start_ns == 0) start_ns = event.time_ns;
    last_ns = std::max(last_ns, event.time_ns);
  }
  void before_change(std::string_view, const wire::Stamp&, collect::Change) override {}
  std::int64_t start_ns = 0;
  std::int64_t last_ns = 0;
};

base::Result<void> replay(const fs::path& path, collect::EventSink& sink) {
  ASSAY_TRY(collect::EventLog log, collect::EventLog::open(path));
  log.finish(sink);
  return {};
}

// Rank 0's task was killed: adds the other ranks' parts that exist.
void add_parts(const PartFolder& folder, store::RunRecord& run, Tracker& tracker,
               store::GpuWork& gpu, Results& results) {
  Part own;
  own.host = run.context.host;
  own.started_unix_ns = run.started_unix_ns;
  own.gpu = std::move(gpu);
  tracker.finish(own);
  const std::chrono::milliseconds at_once{0};
  Part whole = merge_job(folder, std::move(own), {at_once, at_once, at_once}, {}, run);
  gpu = std::move(whole.gpu);
  replay(std::move(whole), results);
}

// A job's nodes share the store, and another node's processes cannot be seen from here.
bool runs_elsewhere(const store::RunRecord& run) {
  if (run.context.host == base::host_name()) return false;
  const auto parts = PartFolder::of_interrupted(run.spool, run.uid);
  return parts && parts->is_run_alive();
}

// In a store shared by a group: only the user of a run can read its event log, and recovers it.
bool is_of_another_user(const store::RunRecord& run) {
  struct stat status {};
  return ::geteuid() != 0 && ::stat(run.spool.c_str(), &status) == 0 &&
         status.st_uid != ::geteuid();
}

base::Result<bool> recover(store::Store& store, store::RunRecord run,
                           const std::optional<EndedRun>& ended) {
  const fs::path events = fs::path(run.spool) / "events";
  TimeRange times;
  const auto readable = replay(events, times);

  Filter filter({.root = store.location().project});
  ASSAY_TRY(StoredDigests digests, StoredDigests::open(store));
  Tracker tracker({.started_ns = times.start_ns,
                   .live = false,
                   .directory = run.directory,
                   .project = store.location().project.string(),
                   .hashing = {.cache = &digests}},
                  filter);
  if (readable) ASSAY_TRY_VOID(replay(events, tracker));
  std::error_code ignored;
  fs::create_directories(run.spool, ignored);
  ASSAY_TRY(StagedResults results, StagedResults::create(run.spool, false));
  std::vector<store::Missed> problems;
  auto counted = collect::GpuCounters::find(run.uid, run.spool);
  store::GpuWork gpu = counted ? stored_gpu_work(counted->report(), problems) : store::GpuWork{};
  const auto parts = PartFolder::of_interrupted(run.spool, run.uid);
  if (parts) {
    add_parts(*parts, run, tracker, gpu, results);
  } else {
    tracker.finish(results);
  }
  results.find_created_folders(run.started_unix_ns);
  const auto path = run.context.environment.find("PATH");
  results.find_interpreters(path == run.context.environment.end() ? "" : path->second,
                            run.directory, run.started_unix_ns);
  results.missed({"killed", kKilled});
  for (store::Missed& problem : problems) results.missed(std::move(problem));
  if (!readable) results.missed({"log", "its event log is gone: " + readable.error().line()});

  ASSAY_TRY(store::RunWriter writer, store::RunWriter::begin(store, run.id));
  // Another process may have recovered it already.
  ASSAY_TRY(const store::RunRecord now, store::head_of(store, run.id));
  if (now.status != store::RunStatus::kRunning) return false;
  ASSAY_TRY_VOID(results.write(writer));
  ASSAY_TRY_VOID(writer.add_gpu(gpu));
  run.status = store::RunStatus::kInterrupted;
  run.complete = false;
  if (ended && ended->collector == run.collector_pid) {
    run.exit_code = base::shell_exit_code(ended->wait_status);
    run.signal = base::signal_of(ended->wait_status);
  }
  // Until its last sign of life: when the command ended is not known.
  run.duration_s = static_cast<double>(times.last_ns - times.start_ns) / 1e9;
  ASSAY_TRY_VOID(writer.finish(run));
  static_cast<void>(store_metrics_file(store, run));
  if (counted) counted->remove();
  if (parts) parts->remove();
  fs::remove_all(run.spool, ignored);
  return true;
}

}  // namespace

base::Result<int> recover_runs(store::Store& store, const std::optional<EndedRun>& ended) {
  ASSAY_TRY(const std::vector<store::RunRecord> stale, store::stale_running_runs(store));
  int count = 0;
  for (const store::RunRecord& listed : stale) {
    ASSAY_TRY(store::RunRecord run, store::head_of(store, listed.id, store::WithContext::kYes));
    if (runs_elsewhere(run) || is_of_another_user(run)) continue;
    ASSAY_TRY(const bool done, recover(store, std::move(run), ended));
    count += done ? 1 : 0;
  }
  return count;
}

}  // namespace assay::lineage
