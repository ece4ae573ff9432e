// plan_limits(): checks limit options against the GPUs of this machine and turns them into the
// values that are written into a run's region. Pure; runs before the command starts.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "observe/wire/gpu_uuid.h"
#include "share/devices.h"
#include "share/limits.h"

namespace assay::share {

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
base::Result<LimitPlan> plan_limits(const std::string& verb, const LimitOptions& options,
                                    const LimitContext& context);

}  // namespace assay::share
