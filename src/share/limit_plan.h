// plan_limits(): checks limit options against the GPUs of this machine and turns them into the
// values that are written into a run's region. A GPU is named by its CUDA index (after
// CUDA_VISIBLE_DEVICES), a UUID or a prefix of one, or as a MIG slice. Pure; runs before the
// command starts.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "machine/gpu_monitor.h"
#include "observe/wire/gpu_uuid.h"
#include "share/limits.h"

namespace assay::share {

// The command's environment variables that decide this; none: not set.
struct CudaEnvironment {
  std::optional<std::string> visible_devices;  // CUDA_VISIBLE_DEVICES
  std::optional<std::string> device_order;     // CUDA_DEVICE_ORDER
};

// The GPUs that the command will see, in CUDA's order. As in CUDA, the list ends at the first entry
// that names no device, and a list that names a device twice is empty.
std::vector<machine::GpuName> visible_gpus(const std::vector<machine::GpuName>& gpus,
                                           const CudaEnvironment& environment);

struct LimitPlan {
  struct Device {
    wire::GpuUuid uuid{};
    std::optional<base::Bytes> total;
    Limits limits;
  };
  Limits all;
  std::vector<Device> devices;

  [[nodiscard]] bool empty() const { return all.empty() && devices.empty(); }
};

// The GPUs and environment that the command will have.
struct LimitContext {
  // None: NVML could not be asked; `why_no_gpus` is the reason.
  std::optional<std::vector<machine::GpuName>> gpus;
  std::string why_no_gpus;
  CudaEnvironment cuda;
  // Set limits even where they cannot be checked: ASSAY_GPU=1, or the run is running already.
  bool unchecked_allowed = false;
};

// Errors are usage errors that begin with `verb` ("run") and the option.
base::Result<LimitPlan> plan_limits(const std::string& verb, const GpuLimitOptions& options,
                                    const LimitContext& context);

}  // namespace assay::share
