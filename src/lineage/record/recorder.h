// Recorder: one `assay run`, from the collector process's point of view. It opens the store, learns
// the context, runs the command under a collector with a Tracker as its sink, and writes the run.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "lineage/record/redirects.h"
#include "lineage/record/stored_digests.h"
#include "lineage/track/filter.h"
#include "lineage/track/tracker.h"
#include "observe/collect/gpu_count.h"
#include "observe/collect/keeper.h"
#include "observe/collect/tracers.h"
#include "share/limit_plan.h"
#include "store/run.h"
#include "store/store.h"

namespace assay::lineage {

struct RunRequest {
  std::vector<std::string> words;
  std::optional<collect::Tracer> tracer = std::nullopt;  // none: the first that works
  std::string name = {};
  bool build = false;
  std::vector<Filter::Choice> choices = {};  // --keep, --leave-out, in their order
  // `run @N`: the stage, and where and with which files as standard input, output and error it ran.
  std::int64_t stage = 0;
  std::string directory = {};
  std::vector<Redirect> redirects = {};
  // What was said about GPUs, as it can be said again, and what that comes to here.
  share::LimitOptions gpu_options = {};
  share::LimitPlan gpu_limits = {};
  bool explain = false;
  bool wait = true;      // for what the command leaves running
  bool summary = false;  // one line about the run when it is over
};

// What shells answer for a command that could not be started.
int exit_code_of(const base::Error& not_started);

class Recorder {
 public:
  Recorder(const RunRequest& request, collect::Channel& channel);

  // Runs and records. Returns an exit code that matters only if the command was not started.
  int record();

 private:
  base::Result<void> prepare(collect::Tracer tracer);
  base::Result<void> prepare_gpu();
  int run_unrecorded(const base::Error& why);
  base::Result<void> run();
  base::Result<void> store(const collect::Outcome& outcome, store::RunStatus status);
  [[nodiscard]] bool keeper_gone() const;
  void give_up();
  void remove_spool();
  void release_descriptors();
  void say(const base::Error& error);

  RunRequest request_;
  collect::Channel& channel_;
  collect::Launch launch_;
  std::vector<int> descriptors_;  // inherited ones, which are the command's alone once it runs
  std::optional<store::Store> store_;
  std::optional<Filter> filter_;
  std::unique_ptr<StoredDigests> digests_;
  std::unique_ptr<Tracker> tracker_;
  std::unique_ptr<collect::Collector> collector_;
  std::optional<collect::GpuCount> gpu_;  // where a CUDA program may run
  store::RunRecord run_;
  std::int64_t started_ns_ = 0;  // monotonic
  bool abandoned_ = false;
  bool detached_ = false;  // the keeper has left on purpose
  std::optional<int> wait_status_;
  std::vector<store::Missed> problems_;
};

}  // namespace assay::lineage
