// plan_limits(): the words of a command line, held against the GPUs of this machine, become what is
// written into a run's region. Pure, and all of it happens before a command starts.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "share/devices.h"
#include "share/limits.h"

namespace assay::share {

struct LimitPlan {
  struct Device {
    Uuid uuid{};
    std::optional<base::Bytes> total;
    Limits limits;
  };
  Limits all;
  std::vector<Device> devices;

  [[nodiscard]] bool empty() const { return all.empty() && devices.empty(); }
};

// Where the command will run.
struct Surroundings {
  // None: there is nobody to ask, and `why` says why.
  std::optional<std::vector<machine::GpuName>> gpus;
  std::string why;
  CudaEnvironment cuda;
  // Limits that cannot be checked may be set all the same: somebody vouches for the driver, or the
  // run runs already.
  bool unchecked_allowed = false;
};

// Errors are usage errors that begin with `verb` ("run") and the option.
base::Result<LimitPlan> plan_limits(const std::string& verb, const LimitWords& words,
                                    const Surroundings& surroundings);

}  // namespace assay::share
