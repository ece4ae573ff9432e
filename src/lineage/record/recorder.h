// Recorder: one recorded run, in the collector process. Opens the store, gathers the context, runs
// the command under a tracer's collector with a Tracker as event sink, and writes the run.
//
//   record() -> prepare() -> run() -> store()
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "lineage/filter/filter.h"
#include "lineage/record/job_part.h"
#include "lineage/record/part.h"
#include "lineage/record/run.h"
#include "lineage/record/run_results.h"
#include "lineage/track/tracker.h"
#include "observe/collect/gpu_counters.h"
#include "observe/collect/keeper.h"
#include "observe/collect/process/input_stream.h"
#include "observe/collect/tracers.h"
#include "store/run.h"
#include "store/store.h"

namespace assay::lineage {

class Recorder {
 public:
  Recorder(const RunRequest& request, collect::KeeperChannel& channel);

  // Runs and records. The returned exit code matters only if the command was not started.
  int record();

 private:
  base::Result<void> prepare(collect::Tracer tracer);
  base::Result<store::Location> locate(const std::filesystem::path& directory);
  base::Result<void> prepare_gpu();
  int run_unrecorded(const base::Error& why);
  base::Result<void> run();
  base::Result<void> store(const collect::CollectorResult& outcome, store::RunStatus status);
  // Reports what was observed of this process's own command.
  bool stop_after_keeper();
  void finish_tracking(const collect::CollectorResult& outcome, Results& results);
  void store_parts(const collect::CollectorResult& outcome, StagedResults& results,
                   store::GpuWork& gpu);
  Part own_part(const collect::CollectorResult& outcome);
  [[nodiscard]] bool is_part() const { return request_.part_of && request_.part_of->rank > 0; }
  [[nodiscard]] bool keeper_gone() const;
  [[nodiscard]] bool was_misused(const StagedResults& results) const;
  void discard();
  void archive_outputs();
  void remove_spool();
  void report(const base::Error& error);

  RunRequest request_;
  collect::KeeperChannel& channel_;
  collect::Launch launch_;
  collect::InputStream input_;         // the command's standard input
  std::vector<int> descriptors_;       // inherited ones, closed here once the command has them
  std::optional<store::Store> store_;  // none: this process records a part of rank 0's run
  std::optional<Filter> filter_;
  std::unique_ptr<StoredDigests> digests_;
  std::unique_ptr<Tracker> tracker_;
  std::unique_ptr<collect::Collector> collector_;
  std::optional<collect::GpuCounters> gpu_;  // if a CUDA program may run
  store::RunRecord run_;
  std::filesystem::path project_;
  std::vector<store::RunId> overlapping_;  // other runs that were running when it began
  std::int64_t started_ns_ = 0;            // monotonic
  std::int64_t started_file_ns_ = 0;       // the file system's clock
  pid_t command_ = 0;
  bool abandoned_ = false;
  bool keeper_killed_ = false;  // and the command, which saves its work, was asked to end
  bool tracer_failed_ = false;  // the tracer does not work on this machine
  bool detached_ = false;       // the keeper ended on purpose: recording goes on in the background
  std::optional<int> wait_status_;
  std::vector<store::Missed> problems_;
  std::optional<JobPart> job_part_;  // if this is a rank of a job
};

}  // namespace assay::lineage
