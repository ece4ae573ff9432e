// What `assay top` shows: two looks at the runs and GPUs of a machine, and what happened between
// them. Pure; print_top, the JSON and the Prometheus text are made from a View.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "machine/gpu_watch.h"
#include "share/region.h"

namespace assay::share {

struct RunLook {
  std::string uid;
  std::optional<std::int64_t> id;  // in the store of this project
  std::string title;               // its name or its command
  RunState state;
};

struct Look {
  std::int64_t monotonic_ns = 0;
  std::vector<RunLook> runs;
  std::vector<machine::GpuName> gpus;
  std::vector<machine::GpuActivity> activities;  // as many
  std::string no_gpus;                           // why there are none
};

// None: there was no look before, or the run was not there.
struct RunRates {
  double launches = 0;  // per second, as the rest
  double kernels = 0;
  double copied_bytes = 0;
  double collectives = 0;
  double collective_bytes = 0;
  double matmul_flops = 0;
};

struct DeviceView {
  DeviceState state;
  std::string gpu;                    // "0", "0.1"; empty: NVML does not know it
  std::string uuid;                   // as NVML writes it, if it knows the device
  std::optional<double> had_percent;  // of the time between the looks, if launches are paced
  std::optional<double> waited_percent;
};

struct RunView {
  RunLook run;
  std::optional<RunRates> rates;
  std::vector<DeviceView> devices;
};

struct GpuView {
  machine::GpuName name;
  machine::GpuActivity activity;
};

struct View {
  double seconds = 0;  // between the looks; 0: there was only one
  std::vector<RunView> runs;
  std::vector<GpuView> gpus;
  std::string no_gpus;
};

View view_of(const Look* before, const Look& now);

base::Json view_json(const View& view);
// What is not said is null, and so is what says "none".
base::Json limits_json(const Limits& limits);

}  // namespace assay::share
