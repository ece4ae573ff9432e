// TopSampler: samples the runs of this machine and its GPUs, again and again. Runs come from the
// project's store (with /proc and the metrics they wrote) and from GPU regions in /dev/shm.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/result.h"
#include "machine/gpu_monitor.h"
#include "observe/collect/gpu_counters.h"
#include "share/usage_view.h"
#include "store/store.h"

namespace assay::cli {

// A run that is running, from the store, from its GPU region, or from both.
struct RunningRun {
  std::string uid;
  std::string title;
  std::optional<collect::GpuCounters> gpu = std::nullopt;  // none: GPU work is not counted
  // Of runs in this project's store.
  std::optional<std::int64_t> id = std::nullopt;
  std::int64_t started_unix_ns = 0;
  pid_t collector = 0;
};

class TopSampler {
 public:
  // An error if the project's store cannot be read.
  static base::Result<TopSampler> open();

  share::UsageSample sample();
  // Runs of this user on this machine: those of the project by number, then others by uid.
  std::vector<RunningRun> running();

 private:
  TopSampler();
  struct Stored {
    std::int64_t id = 0;
    std::string title;
    std::string spool;
    std::int64_t started_unix_ns = 0;
    pid_t collector = 0;
    bool alive = false;  // the collector is running
  };
  void read_stored_runs();
  std::optional<share::TrainingProgress> training_of(std::int64_t run);
  std::vector<share::RankProgress> ranks_of(std::int64_t run);

  std::optional<store::Store> store_;
  std::map<std::string, Stored> stored_;  // by uid
  std::optional<machine::GpuMonitor> gpus_;
  std::string no_gpus_;
};

// The GPU part of a run's sample.
share::RunSample gpu_sample(RunningRun& run);

}  // namespace assay::cli
