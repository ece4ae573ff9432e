// The memory of contexts and modules, which no call allocates: what NVML reports for this process
// on a device, less what was counted. Queried before an allocation if there is a limit, at most
// once a second, and only after something was loaded.
#pragma once

#include "observe/shim/gpu/gpu.h"

namespace assay::gpu {

// Queries NVML if it is time to.
void check_overhead(std::uint32_t device_index);
// In the child of a fork.
void forget_overhead();

}  // namespace assay::gpu
