// Which GPUs a command will see, and which of them a name on the command line means: a CUDA index
// (after CUDA_VISIBLE_DEVICES), a UUID or a prefix of one, or a MIG slice. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "machine/gpu_monitor.h"

namespace assay::share {

// The command's environment variables that decide this; none: not set.
struct CudaEnvironment {
  std::optional<std::string> visible_devices;  // CUDA_VISIBLE_DEVICES
  std::optional<std::string> device_order;     // CUDA_DEVICE_ORDER
};

// In CUDA's order. As in CUDA, the list ends at the first entry that names no device, and a list
// that names a device twice is empty.
std::vector<machine::GpuName> visible_gpus(const std::vector<machine::GpuName>& gpus,
                                           const CudaEnvironment& environment);

// Whether an index means the same to CUDA as here: CUDA sorts cards of different models by speed
// unless CUDA_DEVICE_ORDER asks for the bus order.
bool order_is_known(const std::vector<machine::GpuName>& gpus, const CudaEnvironment& environment);

// The device of `visible` that `text` names. Errors are usage errors with an empty `where`.
base::Result<machine::GpuName> gpu_named(const std::vector<machine::GpuName>& visible,
                                         std::string_view text);

}  // namespace assay::share
