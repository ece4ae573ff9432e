// Free host memory.
#pragma once

#include <cstdint>

namespace assay::train {

// What the kernel can give without swapping, limited by the control groups of this process.
std::int64_t available_host_memory();

}  // namespace assay::train
