// How much memory the host has left for us.
#pragma once

#include <cstdint>

namespace assay::train {

// What the kernel would give without swapping, or less where the control groups around us do.
std::int64_t unused_host_memory();

}  // namespace assay::train
