// What `assay top` shows, as values: two samples of the runs and GPUs of a machine become a
// UsageView, with rates over the time between them. Pure; tables, JSON and Prometheus text are made
// from it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "machine/gpu_monitor.h"
#include "observe/collect/process/proc.h"
#include "share/region.h"

namespace assay::share {

using collect::ProcessUsage;

// The last values that a training run wrote to the store.
struct TrainingProgress {
  std::int64_t step = 0;
  std::optional<double> loss;
  std::optional<double> tokens_per_s;
};

// What a rank of a training run measured about itself.
struct RankProgress {
  std::int64_t rank = 0;
  std::string host;
  std::string place;  // in the layout: "fsdp 1, pp 0"
  std::int64_t step = 0;
  double step_s = 0;             // of the last step
  std::optional<double> wait_s;  // part of step_s spent waiting for communication
  std::int64_t memory_bytes = 0;
  std::int64_t planned_bytes = 0;
  bool slowest = false;  // the other ranks wait for this one
};

struct RunSample {
  std::string uid;
  std::optional<std::int64_t> id;  // in this project's store
  std::string title;               // its name or its command
  // Known for runs of this project only.
  std::optional<double> elapsed_s = std::nullopt;
  std::optional<ProcessUsage> usage = std::nullopt;
  std::optional<TrainingProgress> training = std::nullopt;
  std::vector<RankProgress> ranks = {};  // of a training run on several ranks
  // None: GPU work is not counted.
  std::optional<RunState> gpu = std::nullopt;
};

struct UsageSample {
  std::int64_t monotonic_ns = 0;
  std::vector<RunSample> runs;
  std::vector<machine::GpuName> gpus;
  std::vector<machine::GpuActivity> activities;  // one per GPU
  std::string no_gpus;                           // why there are none
};

// Per second, between two samples.
struct RunRates {
  double launches = 0;
  double kernels = 0;
  double copied_bytes = 0;
  double collectives = 0;
  double collective_bytes = 0;
  double matmul_flops = 0;
};

struct DeviceView {
  DeviceState state;
  std::string gpu;                     // "0", "0.1"; empty: NVML does not list it
  std::string uuid;                    // as NVML writes it, if it lists the device
  std::optional<double> busy_percent;  // of the time between the samples, if launches are paced
  std::optional<double> waited_percent;
};

struct RunView {
  RunSample run;
  // None: this is the first sample, or the run was not in the one before.
  std::optional<double> cpu_percent;  // 100: one CPU core
  std::optional<RunRates> rates;
  std::vector<DeviceView> devices;
};

struct GpuView {
  machine::GpuName name;
  machine::GpuActivity activity;
};

struct UsageView {
  double seconds = 0;  // between the samples; 0: there was only one
  std::vector<RunView> runs;
  std::vector<GpuView> gpus;
  std::string no_gpus;
};

UsageView usage_view(const UsageSample* before, const UsageSample& now);

base::Json usage_json(const UsageView& view);
// Limits that are absent or lifted are null.
base::Json limits_json(const Limits& limits);

}  // namespace assay::share
