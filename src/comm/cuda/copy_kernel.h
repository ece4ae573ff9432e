// A copy within one GPU that runs beside kernels that compute.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace assay::comm {

// After what the stream holds so far. The driver's own copies within a device take all
// multiprocessors, whatever it is asked for, and so run before or after a matrix product. This one
// is a warp on each multiprocessor, small enough for the registers that a matrix product leaves.
cudaError_t copy_beside_kernels(std::byte* to, const std::byte* from, std::size_t bytes,
                                cudaStream_t stream);

}  // namespace assay::comm
