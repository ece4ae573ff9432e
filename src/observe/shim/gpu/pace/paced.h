// Whether this process is paced, and when that changes.
#pragma once

#include "observe/shim/gpu/gpu.h"

namespace assay::gpu {

extern constinit std::atomic<bool> pacing;  // some device has a limit

// The driver has been found.
void pacing_begins();
// The region has other limits than before (check_limits()).
void limits_changed();

}  // namespace assay::gpu
